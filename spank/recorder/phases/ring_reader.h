// The reading side of the marker ring (common/ring.h). Trusts nothing that is in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "common/result.h"
#include "common/ring.h"
#include "spank/recorder/file.h"

namespace sphase {

class RingReader {
 public:
  /// A sealed memfd of `capacity` records, touched here so that its pages are charged to us and
  /// not to the job. Cost: 0.1 to 0.2 ms for 512 KiB.
  static Result<RingReader> create(std::uint32_t capacity = SPHASE_RING_CAPACITY);
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&&) = delete;
  ~RingReader();

  /// Copies out the next record. nullopt: nothing published. A slot claimed for longer than
  /// kTornNs (by `now_ns`, monotonic) whose writer never published it is skipped and counted.
  std::optional<sphase_record> next(std::int64_t now_ns);
  /// Says that everything read so far is handled; lets `sphase begin` go on.
  void publish_tail();
  /// Sleeps until a writer rings or `timeout_ns` is over. Returns at once if records are waiting.
  /// Where another thread reads at the same time, it must wake() the one that waits afterwards.
  void wait(std::int64_t timeout_ns);
  /// Makes the wait() of another thread return, now or when it is next called.
  void wake();

  /// Records that wait; hostile writers can make this any number up to capacity.
  std::uint32_t waiting() const;
  std::uint64_t dropped() const;
  std::uint64_t torn() const { return torn_; }
  int memfd() const { return memfd_.get(); }
  std::uint32_t capacity() const { return capacity_; }
  /// The mapping itself, for a writer in this process.
  sphase_ring* shared() { return ring_; }

  static constexpr std::int64_t kTornNs = 100'000'000;

 private:
  RingReader(Fd memfd, sphase_ring* ring, std::uint32_t capacity)
      : memfd_(std::move(memfd)), ring_(ring), capacity_(capacity) {}
  sphase_record* slot(std::uint64_t position) const;
  void pass(std::uint64_t position);

  Fd memfd_;
  sphase_ring* ring_;
  std::uint32_t capacity_;  // ours, whatever the shared header says
  // Likewise. Moved by the thread that reads, looked at by one that waits.
  std::atomic<std::uint64_t> position_{0};
  std::uint64_t torn_ = 0;
  std::int64_t stuck_since_ns_ = 0;
  std::atomic<bool> nudged_{false};
};

/// Text of a record made safe: at most SPHASE_TEXT_BYTES, '/' becomes '_' in a phase's name
/// (there it joins names), control characters and
/// broken UTF-8 become '?'. For an ATTR the part before (key) and after (value) the NUL.
struct RecordText {
  std::string name;
  std::string value;
};
RecordText record_text(const sphase_record& record);

}  // namespace sphase
