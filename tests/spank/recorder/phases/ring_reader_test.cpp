#include "spank/recorder/phases/ring_reader.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <chrono>
#include <random>
#include <thread>

#include "common/clock.h"
#include "tests/common/tools.h"
#include "tests/spank/recorder/phases/ring_writer.h"

using namespace sphase;
using sphase::testing::RingWriter;

namespace {

constexpr std::uint32_t kCapacity = 16;

struct Ring {
  explicit Ring(std::uint32_t capacity = kCapacity)
      : reader(std::move(*RingReader::create(capacity))), writer(reader.memfd(), capacity) {}
  RingReader reader;
  RingWriter writer;
};

std::string name_of(const sphase_record& record) { return record_text(record).name; }

sphase_record record_with(std::string_view text, std::uint8_t type = SPHASE_BEGIN) {
  sphase_record record{};
  record.type = type;
  record.text_len = static_cast<std::uint8_t>(text.size());
  std::memcpy(record.text, text.data(), std::min<std::size_t>(text.size(), SPHASE_TEXT_BYTES));
  return record;
}

}  // namespace

TEST_CASE("a record comes out as it went in") {
  Ring ring;
  CHECK_FALSE(ring.reader.next(1));
  CHECK(ring.writer.push({7, SPHASE_VALUE, "residual", 123, 0.5, 9, 3, SPHASE_FLAG_SHELL}));
  CHECK(ring.reader.waiting() == 1);
  const auto record = ring.reader.next(1);
  REQUIRE(record);
  CHECK(record->client == 7);
  CHECK(record->type == SPHASE_VALUE);
  CHECK(name_of(*record) == "residual");
  CHECK(record->time_ns == 123);
  CHECK(record->value == 0.5);
  CHECK(record->tid == 9);
  CHECK(record->depth == 3);
  CHECK(record->flags == SPHASE_FLAG_SHELL);
  CHECK_FALSE(ring.reader.next(1));
}

TEST_CASE("the ring goes round in order, and the tail moves only when told") {
  Ring ring;
  for (std::uint64_t i = 0; i < 100 * kCapacity; ++i) {
    REQUIRE(ring.writer.push({1, SPHASE_BEGIN, "a", i + 1}));
    const auto record = ring.reader.next(1);
    REQUIRE(record);
    CHECK(record->time_ns == i + 1);
  }
  CHECK(ring.writer.ring()->tail == 0);
  ring.reader.publish_tail();
  CHECK(ring.writer.ring()->tail == 100 * kCapacity);
}

TEST_CASE("a full ring drops the marker and counts it, and after a drain there is room again") {
  Ring ring;
  for (std::uint32_t i = 0; i < kCapacity; ++i) CHECK(ring.writer.push({}));
  CHECK_FALSE(ring.writer.push({}));
  CHECK_FALSE(ring.writer.push({}));
  CHECK(ring.reader.dropped() == 2);
  CHECK(ring.reader.waiting() == kCapacity);
  REQUIRE(ring.reader.next(1));
  CHECK(ring.writer.push({}));
}

TEST_CASE("a slot whose writer was killed is skipped after 100 ms, and not before") {
  Ring ring;
  REQUIRE(ring.writer.claim());
  CHECK(ring.writer.push({1, SPHASE_BEGIN, "behind"}));
  constexpr std::int64_t kNow = 1'000'000'000;
  CHECK_FALSE(ring.reader.next(kNow));
  CHECK_FALSE(ring.reader.next(kNow + RingReader::kTornNs - 1));
  const auto record = ring.reader.next(kNow + RingReader::kTornNs);
  REQUIRE(record);
  CHECK(name_of(*record) == "behind");
  CHECK(ring.reader.torn() == 1);
}

TEST_CASE("a slot that is published in time is not torn") {
  Ring ring;
  const auto position = ring.writer.claim();
  RingWriter::fill(ring.writer.slot(*position), {1, SPHASE_BEGIN, "slow"});
  CHECK_FALSE(ring.reader.next(1'000'000'000));
  ring.writer.publish(*position);
  const auto record = ring.reader.next(1'000'000'000 + 2 * RingReader::kTornNs);
  REQUIRE(record);
  CHECK(name_of(*record) == "slow");
  CHECK(ring.reader.torn() == 0);
}

TEST_CASE("after a torn slot the ring goes on for as many rounds as one likes") {
  Ring ring;
  REQUIRE(ring.writer.claim());
  (void)ring.reader.next(1);
  (void)ring.reader.next(1 + RingReader::kTornNs);
  for (std::uint64_t i = 0; i < 10 * kCapacity; ++i) {
    REQUIRE(ring.writer.push({1, SPHASE_BEGIN, "a", i}));
    REQUIRE(ring.reader.next(1 + RingReader::kTornNs));
  }
}

TEST_CASE("a forged head, far ahead or behind, neither holds the reader nor hides a record") {
  for (const std::uint64_t forged :
       {std::uint64_t{1}, std::uint64_t{kCapacity}, std::uint64_t{1} << 40, UINT64_MAX / 2,
        UINT64_MAX / 2 + 1, UINT64_MAX}) {
    CAPTURE(forged);
    Ring ring;
    __atomic_store_n(&ring.writer.ring()->head, forged, __ATOMIC_RELEASE);
    CHECK(ring.reader.waiting() <= kCapacity);
    std::int64_t now = 1'000'000'000;
    for (int i = 0; i < 10; ++i, now += RingReader::kTornNs) CHECK_FALSE(ring.reader.next(now));
    CHECK(ring.reader.torn() <= 10 * kCapacity);
  }
  Ring ring;
  CHECK(ring.writer.push({1, SPHASE_BEGIN, "there"}));
  __atomic_store_n(&ring.writer.ring()->head, std::uint64_t{0}, __ATOMIC_RELEASE);
  REQUIRE(ring.reader.next(1));
}

TEST_CASE("forged sequence numbers are at most that many wrong records") {
  for (const std::uint64_t forged : {std::uint64_t{1}, std::uint64_t{kCapacity}, UINT64_MAX}) {
    Ring ring;
    for (std::uint32_t i = 0; i < kCapacity; ++i) ring.writer.slot(i)->seq = forged;
    int records = 0;
    for (int i = 0; i < 1000; ++i) records += ring.reader.next(i) ? 1 : 0;
    CHECK(records <= 1);
  }
}

TEST_CASE("a header that says another capacity changes nothing") {
  Ring ring;
  ring.writer.ring()->capacity = 1 << 30;
  ring.writer.ring()->magic = 0;
  ring.writer.ring()->version = 99;
  for (std::uint64_t i = 0; i < 3 * kCapacity; ++i) {
    REQUIRE(ring.writer.push({}));
    REQUIRE(ring.reader.next(1));
  }
  CHECK(ring.reader.capacity() == kCapacity);
}

TEST_CASE("ten thousand rounds of random bytes: no crash, no hang, text always safe") {
  Ring ring;
  std::mt19937_64 random(42);
  auto* const bytes = reinterpret_cast<unsigned char*>(ring.writer.ring());
  std::int64_t now = 1;
  const std::int64_t limit_ns = monotonic_ns() + 30'000'000'000;
  for (int round = 0; round < 10'000; ++round, now += 30'000'000) {
    if (round % 50 == 0) {
      for (std::size_t i = 0; i < ring.writer.bytes(); i += 8) {
        const std::uint64_t word = random();
        std::memcpy(bytes + i, &word, sizeof(word));
      }
    }
    for (int i = 0; i < 16; ++i) bytes[random() % ring.writer.bytes()] ^= random() & 0xff;
    // Some sequence numbers that the reader takes for published ones.
    const std::uint64_t near = random() % (2 * kCapacity);
    ring.writer.slot(near)->seq = near + 1;
    for (std::uint32_t i = 0; i <= kCapacity; ++i) {
      const auto record = ring.reader.next(now);
      if (!record) break;
      const RecordText text = record_text(*record);
      CHECK(text.name.size() <= SPHASE_TEXT_BYTES);
      CHECK(text.name.find('\0') == std::string::npos);
    }
    CHECK(ring.reader.waiting() <= kCapacity);
    ring.reader.publish_tail();
    REQUIRE(monotonic_ns() < limit_ns);
  }
}

TEST_CASE("the sealed memory can be neither shrunk nor grown nor unsealed") {
  Ring ring;
  CHECK(ftruncate(ring.reader.memfd(), 0) == -1);
  CHECK(ftruncate(ring.reader.memfd(), 1 << 20) == -1);
  CHECK(fcntl(ring.reader.memfd(), F_ADD_SEALS, F_SEAL_WRITE) == -1);
  const int seals = fcntl(ring.reader.memfd(), F_GET_SEALS);
  CHECK((seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) ==
        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK((fcntl(ring.reader.memfd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a wait returns at once where a record waits, and after its time where none does") {
  Ring ring;
  ring.reader.wait(0);
  ring.reader.wait(-5);
  ring.reader.wait(1'000'000);
  CHECK(ring.writer.push({}));
  const std::int64_t before = monotonic_ns();
  ring.reader.wait(20'000'000'000);
  CHECK(monotonic_ns() - before < 10'000'000'000);
  CHECK(ring.writer.ring()->bell == 0);
}

TEST_CASE("a wake-up is never lost, whether it comes before the wait or in it") {
  Ring ring;
  ring.reader.wake();
  const std::int64_t before = monotonic_ns();
  ring.reader.wait(20'000'000'000);
  for (int round = 0; round < 500; ++round) {
    std::thread waker([&] { ring.reader.wake(); });
    ring.reader.wait(20'000'000'000);
    waker.join();
    ring.reader.wait(1);  // takes a nudge that came too late for the wait above
  }
  CHECK(monotonic_ns() - before < 20'000'000'000);
}

TEST_CASE("no marker is lost or sleeps in the ring while a reader waits for the bell") {
  Ring ring(64);
  constexpr int kWriters = 4;
  constexpr int kEach = 5000;
  std::vector<std::thread> writers;
  for (std::uint32_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&ring, w] {
      for (std::uint64_t i = 1; i <= kEach; ++i) {
        while (!ring.writer.push({w, SPHASE_BEGIN, "a", i})) std::this_thread::yield();
      }
    });
  }
  std::vector<std::uint64_t> last(kWriters, 0);
  const std::int64_t limit = monotonic_ns() + 30'000'000'000;
  for (int read = 0; read < kWriters * kEach && monotonic_ns() < limit;) {
    ring.reader.wait(20'000'000'000);
    while (const auto record = ring.reader.next(1)) {
      REQUIRE(record->client < kWriters);
      CHECK(record->time_ns == ++last[record->client]);
      ++read;
    }
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(monotonic_ns() < limit);
  for (const std::uint64_t count : last) CHECK(count == kEach);
}

TEST_CASE("a reader that was moved goes on where the other stopped") {
  Ring ring;
  CHECK(ring.writer.push({1, SPHASE_BEGIN, "one"}));
  CHECK(ring.writer.push({1, SPHASE_BEGIN, "two"}));
  REQUIRE(ring.reader.next(1));
  RingReader moved(std::move(ring.reader));
  const auto record = moved.next(1);
  REQUIRE(record);
  CHECK(name_of(*record) == "two");
}

TEST_CASE("a slash in a phase's name would forge a path; in a value's it is a unit") {
  CHECK(name_of(record_with("a/b")) == "a_b");
  CHECK(name_of(record_with("/")) == "_");
  const RecordText attribute = record_text(record_with({"k/1\0a/b", 7}, SPHASE_ATTR));
  CHECK(attribute.name == "k/1");
  CHECK(attribute.value == "a/b");
  CHECK(name_of(record_with("GB/s", SPHASE_VALUE)) == "GB/s");
}

TEST_CASE("control characters become question marks") {
  CHECK(name_of(record_with("a\nb\tc\x7f")) == "a?b?c?");
  CHECK(name_of(record_with("\x1b[2J")) == "?[2J");
  CHECK(name_of(record_with("a\xc2\x9b"
                            "2J")) == "a?2J");  // CSI as one character, U+009B
  CHECK(name_of(record_with("\xc2\xa0")) == "\xc2\xa0");
}

TEST_CASE("UTF-8 that is right stays, UTF-8 that is broken becomes question marks") {
  for (const char* fine : {"Lösung", "相位", "é", "\xf0\x9f\x98\x80", "\xef\xbf\xbd",
                           "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    CHECK(name_of(record_with(fine)) == fine);
  }
  for (const char* broken :
       {"\xff", "\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc3"}) {
    const std::string name = name_of(record_with(broken));
    CAPTURE(name);
    CHECK(name.find_first_not_of('?') == std::string::npos);
    CHECK_FALSE(name.empty());
  }
  CHECK(name_of(record_with("a\xc3(b")) == "a?(b");
}

TEST_CASE("a text ends at its length, at a NUL, and never beyond its bytes") {
  CHECK(name_of(record_with("")) == "");
  CHECK(name_of(record_with({"ab\0cd", 5})) == "ab");
  sphase_record full = record_with(std::string(SPHASE_TEXT_BYTES, 'x'));
  CHECK(name_of(full).size() == SPHASE_TEXT_BYTES);
  full.text_len = 255;
  CHECK(name_of(full).size() == SPHASE_TEXT_BYTES);
  full.type = SPHASE_ATTR;
  CHECK(record_text(full).value == "");
  CHECK(record_text(record_with({"k\0", 2}, SPHASE_ATTR)).name == "k");
}
