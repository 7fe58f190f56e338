// Source: collector/page/steps.cpp.
#include "collector/page/steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// {time in s, value; -1 = nothing known}
Steps steps_of(const std::vector<std::pair<std::int64_t, double>>& points) {
  Steps steps;
  for (const auto& [time_s, value] : points) {
    steps.push_back({time_s * kSecond, value < 0 ? std::nullopt : std::optional(value)});
  }
  return steps;
}

bool holds(const Steps& steps, const Point& wanted) {
  return std::any_of(steps.begin(), steps.end(), [&](const Point& point) {
    return point.time_ns == wanted.time_ns && point.value == wanted.value;
  });
}

Sample sample_at(double time_s, Maybe cpu_ns, Maybe memory_bytes = {}) {
  Sample sample;
  sample.time_ns = std::llround(time_s * 1e9);
  sample.cpu_time_ns = cpu_ns;
  sample.memory_bytes = memory_bytes;
  return sample;
}

Run run_of(std::vector<Sample> samples) {
  Run run;
  run.period_ns = kSecond;
  run.tick_ns = 4'000'000;
  run.end_ns = samples.empty() ? 0 : samples.back().time_ns;
  run.samples = SampleSeries(std::move(samples));
  return run;
}

Steps noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(0, 100);
  Steps steps;
  for (std::size_t i = 0; i < count; ++i) {
    const bool known = random() % 50 != 0;
    steps.push_back({static_cast<std::int64_t>(i * 1000 + random() % 900),
                     known ? std::optional(value(random)) : std::nullopt});
  }
  return steps;
}

}  // namespace

TEST_CASE("CPUs busy are the CPU time between two samples over their distance") {
  const Steps busy =
      cpus_busy(run_of({sample_at(0, 0), sample_at(1, 2 * kSecond), sample_at(2, 3 * kSecond)}));
  REQUIRE(busy.size() == 3);
  CHECK(busy[0].value == 2.0);
  CHECK(busy[1].value == 1.0);
  CHECK(busy[1].time_ns == kSecond);
  CHECK_FALSE(busy[2].value);
}

TEST_CASE("a look shorter than some kernel ticks shows no peak that never was") {
  // A whole tick is added at 1.001 s: within that millisecond four CPUs would be busy.
  const Steps busy =
      cpus_busy(run_of({sample_at(0, 0), sample_at(1, kSecond),
                        sample_at(1.001, kSecond + 4'000'000), sample_at(2, 2 * kSecond)}));
  for (const auto& point : busy) CHECK(point.value.value_or(1) == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("a short rest at the end belongs to the stretch before it") {
  const Steps busy = cpus_busy(
      run_of({sample_at(0, 0), sample_at(1, kSecond), sample_at(1.001, kSecond + 1'000'000)}));
  REQUIRE(busy.size() == 2);
  CHECK(busy[0].value == doctest::Approx(1));
  CHECK(busy[1].time_ns == 1'001'000'000);
}

TEST_CASE("what no sample knows is not known, and never 0") {
  const Steps busy = cpus_busy(run_of({sample_at(0, 0), sample_at(1, kSecond), sample_at(2, {}),
                                       sample_at(3, 3 * kSecond), sample_at(4, 4 * kSecond)}));
  REQUIRE(busy.size() == 4);
  CHECK(busy[0].value == 1.0);
  CHECK_FALSE(busy[1].value);
  CHECK(busy[1].time_ns == kSecond);
  CHECK(busy[2].time_ns == 3 * kSecond);
  CHECK(memory_of(run_of({sample_at(0, 0), sample_at(1, 1)})).empty());
}

TEST_CASE("a long pause between samples is a gap in both lines") {
  const Run run = run_of({sample_at(0, 0, 5), sample_at(1, kSecond, 5),
                          sample_at(9, 2 * kSecond, 7), sample_at(10, 3 * kSecond, 7)});
  const Steps busy = cpus_busy(run), memory = memory_of(run);
  REQUIRE(sample_gaps(run).size() == 1);
  CHECK(sample_gaps(run)[0] == Interval{kSecond, 9 * kSecond});
  CHECK(holds(busy, {kSecond, std::nullopt}));
  CHECK(holds(memory, {2 * kSecond, std::nullopt}));
  CHECK(holds(memory, {9 * kSecond, 7.0}));
}

TEST_CASE("gaps with a single sample between them are one") {
  const Run run = run_of({sample_at(0, 0), sample_at(9, 0), sample_at(18, 0)});
  CHECK(sample_gaps(run) == std::vector<Interval>{{0, 18 * kSecond}});
}

TEST_CASE("a sum holds between the points of its parts") {
  const Steps a = steps_of({{0, 1}, {10, 3}, {20, -1}}), b = steps_of({{5, 2}, {15, -1}});
  const Steps sum = sum_steps({&a, &b}, Unknown::kLeftOut);
  REQUIRE(sum.size() == 5);
  CHECK(sum[0].value == 1.0);
  CHECK(sum[1].value == 3.0);
  CHECK(sum[2].value == 5.0);
  CHECK(sum[3].value == 3.0);
  CHECK_FALSE(sum[4].value);
}

TEST_CASE("a part that is not known hides the sum, one that has ended does not") {
  const Steps all = steps_of({{0, 1}, {30, -1}});
  const Steps gap = steps_of({{0, 1}, {10, -1}, {20, 1}, {25, -1}});
  const Steps hidden = sum_steps({&all, &gap}, Unknown::kHidden);
  CHECK(holds(hidden, {10 * kSecond, std::nullopt}));
  CHECK(holds(hidden, {20 * kSecond, 2.0}));
  CHECK(holds(hidden, {25 * kSecond, 1.0}));
  CHECK(holds(sum_steps({&all, &gap}, Unknown::kLeftOut), {10 * kSecond, 1.0}));
}

TEST_CASE("few points are left as they are") {
  const Steps steps = noise(100, 1);
  CHECK(thin(steps, 100).size() == 100);
  CHECK(thin({}, 100).empty());
}

TEST_CASE("every peak and every low stays, at its own time, in few enough points") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Steps steps = noise(20'000, seed);
    constexpr std::size_t kMost = 1000;
    const Steps drawn = thin(steps, kMost);
    CHECK(drawn.size() <= kMost);
    CHECK(std::is_sorted(drawn.begin(), drawn.end(),
                         [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; }));
    // Extremes of each part that thin() cuts, which is what a pixel shows.
    const auto length = static_cast<double>(steps.back().time_ns - steps.front().time_ns) + 1;
    std::vector<const Point*> most(kMost / kThinBucket), least(kMost / kThinBucket);
    for (const auto& point : steps) {
      if (!point.value) continue;
      const auto part =
          static_cast<std::size_t>(static_cast<double>(point.time_ns - steps.front().time_ns) /
                                   length * static_cast<double>(most.size()));
      if (most[part] == nullptr || *point.value > *most[part]->value) most[part] = &point;
      if (least[part] == nullptr || *point.value < *least[part]->value) least[part] = &point;
    }
    for (const auto* extreme : most) CHECK((extreme == nullptr || holds(drawn, *extreme)));
    for (const auto* extreme : least) CHECK((extreme == nullptr || holds(drawn, *extreme)));
  }
}

TEST_CASE("a single peak among many points is found again") {
  Steps steps;
  for (int i = 0; i < 1'000'000; ++i) steps.push_back({i, 1.0});
  steps[123'456].value = 99.0;
  steps[654'321].value = 0.0;
  const Steps drawn = thin(steps, 500);
  CHECK(holds(drawn, {123'456, 99.0}));
  CHECK(holds(drawn, {654'321, 0.0}));
  CHECK(drawn.size() <= 500);
}

TEST_CASE("gaps stay gaps, however short or long") {
  Steps steps;
  for (int i = 0; i < 100'000; ++i) {
    const bool gap = i == 500 || (i >= 40'000 && i < 60'000);
    steps.push_back({i, gap ? std::nullopt : std::optional(1.0)});
  }
  const Steps drawn = thin(steps, 200);
  CHECK(holds(drawn, {500, std::nullopt}));
  for (const auto& point : drawn) {
    CHECK(point.value.has_value() ==
          steps[static_cast<std::size_t>(point.time_ns)].value.has_value());
  }
  const auto first_after = std::find_if(drawn.begin(), drawn.end(),
                                        [](const Point& point) { return point.time_ns >= 60'000; });
  REQUIRE(first_after != drawn.begin());
  CHECK_FALSE((first_after - 1)->value);
}

TEST_CASE("points at one time, and too small a limit, do no harm") {
  const Steps steps(1000, Point{7, 1.0});
  CHECK(thin(steps, 0).size() <= kThinBucket);
}
