// The memory peak of a phase, from readings before, in and after it.
#include <doctest/doctest.h>

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
  CHECK_FALSE(row.memory_high_water);
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
  CHECK(row.memory_high_water);
}

TEST_CASE("a high-water mark that did not rise says nothing about this phase") {
  const PhaseRow row =
      one_phase({{99 * kMs, held(1000, 0, 8000)}, {150 * kMs, held(1500, 0, 8000)}});
  CHECK(row.memory_peak_bytes == 1500);
  CHECK_FALSE(row.memory_high_water);
}

TEST_CASE("a mark seen first inside the phase cannot have risen since its begin") {
  const PhaseRow row = one_phase({{150 * kMs, held(1500, 0, 8000)}});
  CHECK(row.memory_peak_bytes == 1500);
  CHECK_FALSE(row.memory_high_water);
}

TEST_CASE("a mark whose rise was page cache does not lower the sampled peak") {
  const PhaseRow row =
      one_phase({{99 * kMs, held(1000, 0, 2000)}, {150 * kMs, held(1800, 5000, 6000)}});
  CHECK(row.memory_peak_bytes == 1800);
  CHECK_FALSE(row.memory_high_water);
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
