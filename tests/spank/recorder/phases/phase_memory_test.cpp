// The memory peak of a phase, from readings before, in and after it.
#include <doctest/doctest.h>

#include <string>

#include "tests/spank/recorder/phases/tracker_harness.h"

using namespace sphase;
using Harness = sphase::testing::TrackerHarness;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Memory held(std::int64_t anon, std::int64_t file = 0, std::optional<std::int64_t> peak = {}) {
  Memory memory;
  memory.anon = anon;
  memory.file = file;
  memory.current = anon + file;
  memory.peak = peak;
  return memory;
}

PhaseRow one_phase(const std::vector<std::pair<std::int64_t, Memory>>& readings) {
  Harness t;
  const StreamId id = Harness::thread(1);
  std::size_t next = 0;
  for (; next < readings.size() && readings[next].first < 100 * kMs; ++next) {
    t.tracker.memory_seen(readings[next].second, readings[next].first);
  }
  t.begin(id, "a", 100 * kMs);
  for (; next < readings.size() && readings[next].first <= 200 * kMs; ++next) {
    t.tracker.memory_seen(readings[next].second, readings[next].first);
  }
  t.end(id, "a", 200 * kMs);
  for (; next < readings.size(); ++next) {
    t.tracker.memory_seen(readings[next].second, readings[next].first);
  }
  t.take(300 * kMs);
  return t.row("a");
}

}  // namespace

TEST_CASE("the peak is the largest reading while the phase was open") {
  const PhaseRow row = one_phase({{50 * kMs, held(9000)},
                                  {110 * kMs, held(1000)},
                                  {150 * kMs, held(3000)},
                                  {190 * kMs, held(2000)},
                                  {250 * kMs, held(9000)}});
  CHECK(row.memory_peak_bytes == 3000);
  CHECK(std::string(row.memory_peak_source) == "sampled");
}

TEST_CASE("a reading just before the begin counts, an old one does not") {
  CHECK(one_phase({{99 * kMs, held(5000)}, {150 * kMs, held(1000)}}).memory_peak_bytes == 5000);
  CHECK(one_phase({{90 * kMs, held(5000)}, {150 * kMs, held(1000)}}).memory_peak_bytes == 1000);
}

TEST_CASE("a phase too short for a reading has the last one known") {
  CHECK(one_phase({{50 * kMs, held(700)}}).memory_peak_bytes == 700);
  CHECK(one_phase({}).memory_peak_bytes == std::nullopt);
}

TEST_CASE("a high-water mark that rose in the phase is its peak, without page cache") {
  const PhaseRow row = one_phase({{99 * kMs, held(1000, 100, 2000)},
                                  {150 * kMs, held(1000, 400, 8000)},
                                  {190 * kMs, held(1000, 300, 8000)}});
  CHECK(row.memory_peak_bytes == 8000 - 400);
  CHECK(std::string(row.memory_peak_source) == "high-water");
}

TEST_CASE("a high-water mark that did not rise says nothing about this phase") {
  const PhaseRow row =
      one_phase({{99 * kMs, held(1000, 0, 8000)}, {150 * kMs, held(1500, 0, 8000)}});
  CHECK(row.memory_peak_bytes == 1500);
  CHECK(std::string(row.memory_peak_source) == "sampled");
}

TEST_CASE("a mark seen first inside the phase cannot have risen since its begin") {
  const PhaseRow row = one_phase({{150 * kMs, held(1500, 0, 8000)}});
  CHECK(row.memory_peak_bytes == 1500);
  CHECK(std::string(row.memory_peak_source) == "sampled");
}

TEST_CASE("a mark whose rise was page cache does not lower the sampled peak") {
  const PhaseRow row =
      one_phase({{99 * kMs, held(1000, 0, 2000)}, {150 * kMs, held(1800, 5000, 6000)}});
  CHECK(row.memory_peak_bytes == 1800);
  CHECK(std::string(row.memory_peak_source) == "sampled");
}

TEST_CASE("a reading whose parts are unknown raises nothing") {
  const PhaseRow row = one_phase({{110 * kMs, held(1000)}, {150 * kMs, Memory{}}});
  CHECK(row.memory_peak_bytes == 1000);
}

TEST_CASE("one reading raises every open phase of every task") {
  Harness t;
  t.begin(Harness::thread(1, 0), "a", 1);
  t.begin(Harness::thread(1, 0), "b", 2);
  t.begin(Harness::thread(1, 1), "c", 3);
  t.tracker.memory_seen(held(100), 4);
  CHECK(t.tracker.lowest_open_peak() == 100);
  t.begin(Harness::thread(1, 1), "d", 10 * kMs);
  CHECK(t.tracker.lowest_open_peak() == -1);
  t.take(20 * kMs);
  CHECK(t.row("a").memory_peak_bytes == 100);
  CHECK(t.row("a/b").memory_peak_bytes == 100);
  CHECK(t.row("c", 1, 1).memory_peak_bytes == 100);
  CHECK(t.row("c/d", 1, 1).memory_peak_bytes == std::nullopt);
}

namespace {

/// Marks of the kernel that are set anew at each reading: peak and page cache, by time.
struct Marked {
  std::int64_t time_ns, peak_bytes, file_bytes;
};

/// Phase "a" from 100 to 200 ms.
PhaseRow marked_phase(const std::vector<Marked>& readings) {
  Harness t;
  std::size_t next = 0;
  const auto see_until = [&](std::int64_t time_ns) {
    for (; next < readings.size() && readings[next].time_ns <= time_ns; ++next) {
      t.tracker.peak_seen(readings[next].peak_bytes, readings[next].file_bytes,
                          readings[next].time_ns);
    }
  };
  see_until(100 * kMs);
  t.begin(Harness::thread(1), "a", 100 * kMs);
  see_until(200 * kMs);
  t.end(Harness::thread(1), "a", 200 * kMs);
  t.take(300 * kMs);
  return t.row("a");
}

}  // namespace

TEST_CASE("a mark set anew at both edges is the peak of the phase, whatever came before") {
  const PhaseRow row = marked_phase(
      {{50 * kMs, 9000, 0}, {100 * kMs, 8000, 0}, {150 * kMs, 700, 0}, {200 * kMs, 2000, 0}});
  CHECK(row.memory_peak_bytes == 2000);
  CHECK(std::string(row.memory_peak_source) == "peak");
}

TEST_CASE("the most page cache at either end of a stretch is taken off its mark") {
  const PhaseRow row = marked_phase({{100 * kMs, 8000, 300}, {200 * kMs, 2000, 500}});
  CHECK(row.memory_peak_bytes == 1500);
  const PhaseRow other = marked_phase({{100 * kMs, 8000, 500}, {200 * kMs, 2000, 300}});
  CHECK(other.memory_peak_bytes == 1500);
}

TEST_CASE("without a reading at its begin or its end a phase has no exact peak") {
  const PhaseRow late =
      marked_phase({{90 * kMs, 9000, 0}, {150 * kMs, 9000, 0}, {200 * kMs, 1, 0}});
  CHECK(late.memory_peak_bytes == std::nullopt);  // 9000 may have been before it
  const PhaseRow early = marked_phase({{100 * kMs, 9000, 0}, {190 * kMs, 400, 0}});
  CHECK(early.memory_peak_bytes == 400);
  CHECK(std::string(early.memory_peak_source) == "sampled");
}

TEST_CASE("a phase around others has the largest of their marks") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.tracker.peak_seen(50, 0, 10);
  t.begin(id, "outer", 10);
  t.tracker.peak_seen(100, 0, 20);
  t.begin(id, "one", 20);
  t.tracker.peak_seen(700, 0, 30);
  t.end(id, "one", 30);
  t.tracker.peak_seen(200, 0, 40);
  t.begin(id, "two", 40);
  t.tracker.peak_seen(300, 0, 50);
  t.end(id, "two", 50);
  t.tracker.peak_seen(150, 0, 60);
  t.end(id, "outer", 60);
  t.take(100);
  CHECK(t.row("outer/one").memory_peak_bytes == 700);
  CHECK(t.row("outer/two").memory_peak_bytes == 300);
  CHECK(t.row("outer").memory_peak_bytes == 700);
  CHECK(std::string(t.row("outer").memory_peak_source) == "peak");
}

TEST_CASE("a phase that was reopened has no exact peak: nobody looked in between") {
  Harness t;
  std::int64_t now = 10;
  const auto mark = [&](std::uint32_t tid, bool begin) {
    now += 10;
    t.tracker.peak_seen(100 + now, 0, now);
    begin ? t.begin(Harness::thread(tid), "a", now) : t.end(Harness::thread(tid), "a", now);
  };
  mark(1, true);
  mark(2, true);
  mark(1, false);
  mark(2, false);
  mark(1, true);
  mark(1, false);  // closes the second instance
  mark(2, true);   // which the slower thread opens again
  mark(2, false);
  t.take(1000);
  CHECK(std::string(t.row("a", 1).memory_peak_source) == "peak");
  CHECK(t.row("a", 2).threads == 2);
  CHECK(std::string(t.row("a", 2).memory_peak_source) == "sampled");
}
