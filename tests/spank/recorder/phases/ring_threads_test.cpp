// The marker's own writer and the recorder's own reader in one mapping, so that the thread
// sanitizer sees both sides of every record.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "marker/internal.h"
#include "spank/recorder/phases/ring_reader.h"

using namespace sphase;

namespace {

constexpr std::uint32_t kWriters = 8;
constexpr std::uint32_t kClient = 7;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kEach = 5'000;
#else
constexpr int kEach = 50'000;
#endif

/// A process that has joined `reader`'s ring.
struct Process {
  explicit Process(RingReader& reader) {
    process.ring = reader.shared();
    process.index_mask = reader.capacity() - 1;
    process.client = kClient;
  }
  bool push(std::uint32_t tid, int number) {
    sphase_text text;
    sphase_text_phase(&text, tid % 2 == 0 ? "even" : "odd");
    sphase_mark mark{};
    mark.type = SPHASE_VALUE;
    mark.tid = tid;
    mark.value = number;
    mark.text = &text;
    return sphase_push(&process, &mark, nullptr) == 1;
  }
  sphase_process process{};
};

}  // namespace

TEST_CASE(
    "eight writers and the reader: each record arrives whole, once and in its thread's order") {
  auto reader = RingReader::create(256);
  REQUIRE(reader);
  Process process(*reader);
  std::atomic<std::uint32_t> running = kWriters;
  std::atomic<std::uint64_t> dropped = 0;
  std::vector<std::thread> writers;
  for (std::uint32_t tid = 1; tid <= kWriters; ++tid) {
    writers.emplace_back([&, tid] {
      for (int i = 1; i <= kEach; ++i) {
        if (process.push(tid, i)) continue;
        ++dropped;
        std::this_thread::yield();  // or the ring is full before the reader has begun
      }
      if (--running == 0) reader->wake();
    });
  }

  std::map<std::uint32_t, double> last;
  std::uint64_t got = 0, wrong = 0;
  const auto drain = [&] {
    while (const auto record = reader->next(monotonic_ns())) {
      ++got;
      const std::string name = record_text(*record).name;
      const bool whole = record->client == kClient && record->tid >= 1 && record->tid <= kWriters &&
                         name == (record->tid % 2 == 0 ? "even" : "odd") &&
                         record->value > last[record->tid];
      if (!whole) ++wrong;
      last[record->tid] = record->value;
    }
    reader->publish_tail();
  };
  while (running > 0) {
    drain();
    reader->wait(50'000'000);
  }
  for (std::thread& writer : writers) writer.join();
  drain();

  CHECK(wrong == 0);
  CHECK(got > reader->capacity());
  CHECK(got + dropped == std::uint64_t{kWriters} * kEach);
  CHECK(reader->dropped() == dropped);
  CHECK(reader->torn() == 0);
}
