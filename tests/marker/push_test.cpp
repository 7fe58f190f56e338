// The ring's writer against a reader in the same memory, so that a thread sanitizer sees both.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "marker/internal.h"
#include "tests/marker/fake_reader.h"
#include "tests/marker/in_child.h"

using sphase::testing::init_ring;
using sphase::testing::records_of;
using sphase::testing::ring_bytes;
using sphase::testing::RingReader;

namespace {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// A ring in plain memory, and a process that has joined it.
struct HeapRing {
  explicit HeapRing(std::uint32_t capacity)
      : memory(std::aligned_alloc(4096, (ring_bytes(capacity) + 4095) / 4096 * 4096)),
        ring(static_cast<sphase_ring*>(memory.get())),
        reader(ring, capacity) {
    std::memset(memory.get(), 0, ring_bytes(capacity));
    init_ring(ring, capacity);
    process.ring = ring;
    process.index_mask = capacity - 1;
    process.client = 7;
  }

  int push(std::uint32_t tid, double value = 0, std::uint64_t* position = nullptr) {
    sphase_mark mark{};
    mark.type = SPHASE_VALUE;
    mark.tid = tid;
    mark.value = value;
    return sphase_push(&process, &mark, position);
  }

  std::unique_ptr<void, FreeMemory> memory;
  sphase_ring* ring;
  RingReader reader;
  sphase_process process{};
};

std::uint64_t ignore_all(RingReader& reader) {
  return reader.drain([](const sphase_record&) {});
}

}  // namespace

TEST_CASE("a record arrives with everything that was marked") {
  HeapRing heap(8);
  sphase_text text;
  REQUIRE(sphase_text_phase(&text, "solve") == 1);
  const sphase_mark mark{&text, 2.5, 42, 3, SPHASE_BEGIN, SPHASE_FLAG_SHELL};
  const auto before = static_cast<std::uint64_t>(sphase_now_ns(CLOCK_MONOTONIC));
  std::uint64_t position = 99;
  REQUIRE(sphase_push(&heap.process, &mark, &position) == 1);
  CHECK(position == 0);
  const auto after = static_cast<std::uint64_t>(sphase_now_ns(CLOCK_MONOTONIC));
  std::vector<sphase_record> got;
  CHECK(heap.reader.drain([&](const sphase_record& record) { got.push_back(record); }) == 1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].time_ns >= before);
  CHECK(got[0].time_ns <= after);
  CHECK(got[0].cpu_time_ns > 0);
  CHECK(got[0].value == 2.5);
  CHECK(got[0].client == 7);
  CHECK(got[0].tid == 42);
  CHECK(got[0].depth == 3);
  CHECK(got[0].type == SPHASE_BEGIN);
  CHECK(got[0].flags == SPHASE_FLAG_SHELL);
  CHECK(std::string(got[0].text, got[0].text_len) == "solve");
}

TEST_CASE("the process's CPU time is stamped once per millisecond") {
  HeapRing heap(64);
  for (int i = 0; i < 10; ++i) heap.push(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  heap.push(1);
  int stamped = 0;
  int count = 0;
  sphase_record first{};
  sphase_record last{};
  heap.reader.drain([&](const sphase_record& record) {
    if (count++ == 0) first = record;
    last = record;
    stamped += record.cpu_time_ns != 0 ? 1 : 0;
  });
  CHECK(first.cpu_time_ns > 0);
  CHECK(last.cpu_time_ns > 0);
  CHECK(stamped < 11);
}

TEST_CASE("a full ring drops the marker, counts it, and takes markers again once it is drained") {
  HeapRing heap(8);
  for (int i = 0; i < 8; ++i) CHECK(heap.push(1) == 1);
  CHECK(heap.push(1) == 0);
  CHECK(heap.push(1) == 0);
  CHECK(heap.ring->dropped == 2);
  CHECK(ignore_all(heap.reader) == 8);
  CHECK(heap.push(1) == 1);
  CHECK(heap.ring->dropped == 2);
}

TEST_CASE("the ring is used many times round") {
  HeapRing heap(4);
  double next = 0;
  for (int i = 0; i < 1000; ++i) {
    CHECK(heap.push(1, i) == 1);
    heap.reader.drain([&](const sphase_record& record) { CHECK(record.value == next++); });
  }
  CHECK(next == 1000);
}

TEST_CASE(
    "a writer that the reader has passed by does not jam the ring when it comes back (not under "
    "the thread sanitizer)") {
  if (sphase::testing::kThreadSanitized) {
    MESSAGE("skipped: such a writer overwrites a record, which is a race, and meant to be one");
    return;
  }
  HeapRing heap(8);
  std::atomic<bool> running = true;
  std::vector<std::thread> writers;
  for (std::uint32_t t = 1; t <= 2; ++t) {
    writers.emplace_back([&heap, &running, t] {
      while (running) heap.push(t);
    });
  }
  // A reader without patience: what is claimed and not yet published is skipped at once.
  int skipped = 0;
  const auto start = std::chrono::steady_clock::now();
  while (skipped < 1000 && std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) {
    ignore_all(heap.reader);
    if (heap.reader.is_behind()) {
      heap.reader.skip();
      ++skipped;
    }
  }
  running = false;
  for (auto& writer : writers) writer.join();
  CHECK(skipped == 1000);
  while (heap.reader.is_behind()) {
    if (ignore_all(heap.reader) == 0) heap.reader.skip();
  }
  for (int i = 0; i < 16; ++i) {
    CHECK(heap.push(1) == 1);
    CHECK(ignore_all(heap.reader) == 1);
  }
}

TEST_CASE("a ring full of nonsense never holds a writer up") {
  HeapRing heap(8);
  for (const std::uint64_t seq : {UINT64_MAX, UINT64_MAX / 2, std::uint64_t{1}}) {
    for (std::uint64_t head : {std::uint64_t{0}, UINT64_MAX, UINT64_MAX / 2 + 3}) {
      heap.ring->head = head;
      for (int i = 0; i < 8; ++i) records_of(heap.ring)[i].seq = seq + static_cast<unsigned>(i);
      const std::uint64_t before = heap.ring->dropped;
      for (int i = 0; i < 20; ++i) heap.push(1);
      CHECK(heap.ring->dropped - before <= 20);
    }
  }
  heap.ring->capacity = 1U << 30;  // of no interest to the writer
  heap.ring->magic = 0;
  init_ring(heap.ring, 8);
  heap.ring->head = 0;
  CHECK(heap.push(1) == 1);
}

TEST_CASE("the bell is rung once for a reader that sleeps, and errno is left alone") {
  HeapRing heap(8);
  heap.ring->bell = 1;
  errno = 1234;
  CHECK(heap.push(1) == 1);
  CHECK(errno == 1234);
  CHECK(heap.ring->bell == 0);
  std::thread sleeper([&] {
    ignore_all(heap.reader);
    for (int i = 0; i < 500 && ignore_all(heap.reader) == 0; ++i) heap.reader.wait_for_bell(10'000);
  });
  while (__atomic_load_n(&heap.ring->bell, __ATOMIC_SEQ_CST) == 0) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  CHECK(heap.push(1) == 1);
  sleeper.join();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("no wake-up is lost between a reader that falls asleep and a writer") {
  HeapRing heap(16);
  const int rounds = sphase::testing::kSanitized ? 2'000 : 20'000;
  std::atomic<int> seen = 0;
  std::thread reader([&] {
    const auto start = std::chrono::steady_clock::now();
    while (seen < rounds) {
      const auto n = ignore_all(heap.reader);
      seen += static_cast<int>(n);
      if (n == 0) heap.reader.wait_for_bell(20'000);
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(15)) return;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    heap.push(1);
    for (int spin = 0; seen <= i && spin < 100'000'000; ++spin) std::this_thread::yield();
  }
  reader.join();
  CHECK(seen == rounds);
}

TEST_CASE("records of ten threads arrive whole, once, and in each thread's order") {
  HeapRing heap(256);
  const int threads = 10;
  const int each = sphase::testing::kSanitized ? 2'000 : 20'000;
  std::atomic<int> running = threads;
  std::atomic<std::uint64_t> dropped = 0;
  std::vector<std::thread> writers;
  for (int t = 1; t <= threads; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 1; i <= each; ++i) {
        if (heap.push(static_cast<std::uint32_t>(t), i) == 0) {
          ++dropped;
          std::this_thread::yield();  // or the ring is full before the reader has begun
        }
      }
      --running;
    });
  }
  std::map<std::uint32_t, double> last;
  std::uint64_t got = 0;
  bool ordered = true;
  const auto take = [&](const sphase_record& record) {
    ++got;
    ordered = ordered && record.client == 7 && record.value > last[record.tid];
    last[record.tid] = record.value;
  };
  while (running > 0) {
    if (heap.reader.drain(take) == 0) std::this_thread::yield();
  }
  for (auto& writer : writers) writer.join();
  heap.reader.drain(take);
  CHECK(ordered);
  CHECK(got > 256);
  CHECK(got + dropped == static_cast<std::uint64_t>(threads) * static_cast<std::uint64_t>(each));
  CHECK(heap.ring->dropped == dropped);
  CHECK(heap.ring->tail == got);
}
