#include "spank/recorder/phases/ring_reader.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "common/clock.h"

namespace sphase {
namespace {

/// Every access to memory that others write goes through these: one load or store, once.
template <typename T>
T load(const T& word, int order = __ATOMIC_ACQUIRE) {
  return __atomic_load_n(&word, order);
}
template <typename T>
void store(T& word, T value, int order = __ATOMIC_RELEASE) {
  __atomic_store_n(&word, value, order);
}

std::size_t map_bytes(std::uint32_t capacity) {
  return SPHASE_RING_HEADER_BYTES + std::size_t{capacity} * SPHASE_RECORD_BYTES;
}

/// Length of a well-formed UTF-8 sequence at `at`, 0 if it is broken.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t length = byte < 0x80   ? 1
                             : byte < 0xc2 ? 0
                             : byte < 0xe0 ? 2
                             : byte < 0xf0 ? 3
                             : byte < 0xf5 ? 4
                                           : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  if (length < 3) return length;
  // Longer than needed (E0, F0), a surrogate (ED) or beyond U+10FFFF (F4).
  const auto second = static_cast<unsigned char>(text[at + 1]);
  const bool allowed = byte == 0xe0   ? second >= 0xa0
                       : byte == 0xed ? second < 0xa0
                       : byte == 0xf0 ? second >= 0x90
                       : byte == 0xf4 ? second < 0x90
                                      : true;
  return allowed ? length : 0;
}

/// C0, DEL, and C1 (U+0080 to U+009F, of which some steer terminals).
bool is_control(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  if (byte < 0x20 || byte == 0x7f) return true;
  return byte == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

std::string safe(std::string_view text, bool is_name) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0 || is_control(text.substr(at, length))) {
      out.push_back('?');
    } else if (text[at] == '/' && is_name) {
      out.push_back('_');
    } else {
      out.append(text.substr(at, length));
    }
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

}  // namespace

Result<RingReader> RingReader::create(std::uint32_t capacity) {
  Fd memfd(memfd_create("sphase-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return errno_error("memfd_create");
  const std::size_t bytes = map_bytes(capacity);
  if (ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) return errno_error("ftruncate");
  if (fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return errno_error("sealing the ring");
  }
  void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (map == MAP_FAILED) return errno_error("mmap of the ring");
  auto* const ring = static_cast<sphase_ring*>(map);
  RingReader reader(std::move(memfd), ring, capacity);
  ring->capacity = capacity;
  ring->version = SPHASE_WIRE_VERSION;
  for (std::uint64_t i = 0; i < capacity; ++i) reader.slot(i)->seq = i;
  store(ring->magic, SPHASE_RING_MAGIC);
  return reader;
}

RingReader::RingReader(RingReader&& other) noexcept
    : memfd_(std::move(other.memfd_)),
      ring_(std::exchange(other.ring_, nullptr)),
      capacity_(other.capacity_),
      position_(other.position_.load()),
      torn_(other.torn_),
      stuck_since_ns_(other.stuck_since_ns_) {}

RingReader::~RingReader() {
  if (ring_ != nullptr) munmap(ring_, map_bytes(capacity_));
}

sphase_record* RingReader::slot(std::uint64_t position) const {
  auto* const records =
      reinterpret_cast<sphase_record*>(reinterpret_cast<char*>(ring_) + SPHASE_RING_HEADER_BYTES);
  return records + (position & (capacity_ - 1));
}

/// Gives the slot at `position` back to the writers and goes on to the next.
void RingReader::pass(std::uint64_t position) {
  store(slot(position)->seq, position + capacity_);
  position_.store(position + 1, std::memory_order_relaxed);
}

std::optional<sphase_record> RingReader::next(std::int64_t now_ns) {
  while (true) {
    const std::uint64_t position = position_.load(std::memory_order_relaxed);
    sphase_record* const shared = slot(position);
    if (load(shared->seq) == position + 1) {
      sphase_record copy;
      std::memcpy(&copy, shared, sizeof(copy));
      pass(position);
      stuck_since_ns_ = 0;
      return copy;
    }
    if (waiting() == 0) {
      stuck_since_ns_ = 0;
      return std::nullopt;
    }
    // Claimed, not published: its writer is at it right now, or was killed in the middle.
    if (stuck_since_ns_ == 0) stuck_since_ns_ = now_ns;
    if (now_ns - stuck_since_ns_ < kTornNs) return std::nullopt;
    ++torn_;
    pass(position);
    // stuck_since_ns_ stays: further torn slots behind this one have waited as long.
    now_ns = stuck_since_ns_ + kTornNs;
    if (torn_ % capacity_ == 0) return std::nullopt;  // a forged `head` must not hold us here
  }
}

void RingReader::publish_tail() { store(ring_->tail, position_.load()); }

std::uint32_t RingReader::waiting() const {
  const std::uint64_t ahead = load(ring_->head) - position_.load(std::memory_order_relaxed);
  // A forged head may be anywhere: behind us means nothing, far ahead means at most all slots.
  if (ahead > UINT64_MAX / 2) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ahead, capacity_));
}

std::uint64_t RingReader::dropped() const { return load(ring_->dropped, __ATOMIC_RELAXED); }

void RingReader::wait(std::int64_t timeout_ns) {
  if (timeout_ns <= 0) return;
  __atomic_store_n(&ring_->bell, 1u, __ATOMIC_SEQ_CST);
  // In one order with the bell, or a marker could come between unseen.
  const std::uint64_t position = position_.load();
  if (nudged_.exchange(false) || load(slot(position)->seq, __ATOMIC_SEQ_CST) == position + 1) {
    store(ring_->bell, 0u);
    return;
  }
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &ring_->bell, FUTEX_WAIT, 1, &timeout, nullptr, 0);
  store(ring_->bell, 0u);
}

void RingReader::wake() {
  nudged_.store(true);
  store(ring_->bell, 0u);
  syscall(SYS_futex, &ring_->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

RecordText record_text(const sphase_record& record) {
  const std::size_t length = std::min<std::size_t>(record.text_len, SPHASE_TEXT_BYTES);
  const std::string_view text(record.text, length);
  const std::size_t nul = text.find('\0');
  const bool phase = record.type == SPHASE_BEGIN || record.type == SPHASE_END;
  const std::string name = safe(text.substr(0, nul), phase);
  if (record.type != SPHASE_ATTR || nul == std::string_view::npos) return {name, ""};
  return {name, safe(text.substr(nul + 1), false)};
}

}  // namespace sphase
