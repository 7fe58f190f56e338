// A writer of the ring by the rules of common/ring.h, and one that breaks them.
#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "common/ring.h"

namespace sphase::testing {

class RingWriter {
 public:
  RingWriter(int memfd, std::uint32_t capacity)
      : capacity_(capacity),
        bytes_(SPHASE_RING_HEADER_BYTES + std::size_t{capacity} * SPHASE_RECORD_BYTES) {
    void* const map = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (map == MAP_FAILED) throw std::runtime_error("mmap of the ring");
    ring_ = static_cast<sphase_ring*>(map);
  }
  ~RingWriter() { munmap(ring_, bytes_); }
  RingWriter(const RingWriter&) = delete;
  RingWriter& operator=(const RingWriter&) = delete;

  sphase_ring* ring() { return ring_; }
  std::size_t bytes() const { return bytes_; }
  sphase_record* slot(std::uint64_t position) {
    return reinterpret_cast<sphase_record*>(reinterpret_cast<char*>(ring_) +
                                            SPHASE_RING_HEADER_BYTES) +
           position % capacity_;
  }

  /// The next position, or nullopt where the ring is full.
  std::optional<std::uint64_t> claim() {
    std::uint64_t position = __atomic_load_n(&ring_->head, __ATOMIC_RELAXED);
    while (true) {
      const std::uint64_t seq = __atomic_load_n(&slot(position)->seq, __ATOMIC_ACQUIRE);
      if (seq < position) {
        __atomic_fetch_add(&ring_->dropped, 1, __ATOMIC_RELAXED);
        return std::nullopt;
      }
      if (seq > position) {
        position = __atomic_load_n(&ring_->head, __ATOMIC_RELAXED);
      } else if (__atomic_compare_exchange_n(&ring_->head, &position, position + 1, false,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return position;
      }
    }
  }
  void publish(std::uint64_t position) {
    __atomic_store_n(&slot(position)->seq, position + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring_->bell, __ATOMIC_SEQ_CST) == 1 &&
        __atomic_exchange_n(&ring_->bell, 0u, __ATOMIC_SEQ_CST) == 1) {
      syscall(SYS_futex, &ring_->bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  }

  struct Marker {
    std::uint32_t client = 1;
    std::uint8_t type = SPHASE_BEGIN;
    std::string_view text = "a";
    std::uint64_t time_ns = 0;
    double value = 0;
    std::uint32_t tid = 1;
    std::uint16_t depth = SPHASE_DEPTH_UNKNOWN;
    std::uint8_t flags = 0;
  };
  bool push(const Marker& marker) {
    const auto position = claim();
    if (!position) return false;
    fill(slot(*position), marker);
    publish(*position);
    return true;
  }
  static void fill(sphase_record* record, const Marker& marker) {
    record->time_ns = marker.time_ns;
    record->cpu_time_ns = 0;
    record->value = marker.value;
    record->client = marker.client;
    record->tid = marker.tid;
    record->depth = marker.depth;
    record->type = marker.type;
    record->flags = marker.flags;
    record->text_len = static_cast<std::uint8_t>(marker.text.size());
    std::memcpy(record->text, marker.text.data(),
                marker.text.size() < SPHASE_TEXT_BYTES ? marker.text.size() : SPHASE_TEXT_BYTES);
  }

 private:
  std::uint32_t capacity_;
  std::size_t bytes_;
  sphase_ring* ring_ = nullptr;
};

}  // namespace sphase::testing
