#include "collector/timeline/sample_series.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Sample cpu(std::int64_t time_ms, Maybe cpu_time_ns) {
  Sample sample;
  sample.time_ns = time_ms * kMs;
  sample.cpu_time_ns = cpu_time_ns;
  return sample;
}

const auto kCpu = &Sample::cpu_time_ns;

}  // namespace

TEST_CASE("between two samples a counter is interpolated, and says so") {
  const SampleSeries series({cpu(0, 0), cpu(100, 100 * kMs)});
  const Reading reading = series.at(kCpu, 25 * kMs);
  CHECK(reading.value == 25 * kMs);
  CHECK_FALSE(reading.exact);
}

TEST_CASE("a sample within 2 ms is the reading of that moment") {
  const SampleSeries series({cpu(0, 0), cpu(50, 70 * kMs), cpu(100, 100 * kMs)});
  CHECK(series.at(kCpu, 52 * kMs).value == 70 * kMs);
  CHECK(series.at(kCpu, 52 * kMs).exact);
  CHECK(series.at(kCpu, 48 * kMs).exact);
  CHECK_FALSE(series.at(kCpu, 53 * kMs).exact);
}

TEST_CASE("a counter that did not move is exact between samples") {
  const SampleSeries series({cpu(0, 500), cpu(100, 500)});
  CHECK(series.at(kCpu, 50 * kMs).value == 500);
  CHECK(series.at(kCpu, 50 * kMs).exact);
}

TEST_CASE("CPU time that moved by less than a kernel tick is exact between samples") {
  const SampleSeries still({cpu(0, 0), cpu(100, 4 * kMs)});
  CHECK(still.at(kCpu, 50 * kMs).exact);
  const SampleSeries moved({cpu(0, 0), cpu(100, 4 * kMs + 1)});
  CHECK_FALSE(moved.at(kCpu, 50 * kMs).exact);
}

TEST_CASE("before the first and after the last sample their values hold") {
  const SampleSeries ended({cpu(100, 10), cpu(200, 90)});
  CHECK(ended.at(kCpu, 0).value == 10);
  CHECK(ended.at(kCpu, 0).exact);
  CHECK(ended.at(kCpu, 900 * kMs).value == 90);
  CHECK(ended.at(kCpu, 900 * kMs).exact);
}

TEST_CASE("samples that do not know the counter are passed over") {
  const SampleSeries series({cpu(0, 0), cpu(40, {}), cpu(60, {}), cpu(100, 100 * kMs)});
  CHECK(series.at(kCpu, 50 * kMs).value == 50 * kMs);
  CHECK_FALSE(series.at(kCpu, 40 * kMs).exact);
}

TEST_CASE("a counter that nobody knows is not known, and not 0") {
  const SampleSeries series({cpu(0, {}), cpu(100, {})});
  CHECK_FALSE(series.at(kCpu, 50 * kMs).value.has_value());
  CHECK_FALSE(series.increase(kCpu, 0, 100 * kMs).value.has_value());
  CHECK_FALSE(SampleSeries().increase(kCpu, 0, 1).value.has_value());
  CHECK_FALSE(SampleSeries().memory_peak(0, 1).has_value());
}

TEST_CASE("an increase is exact if both of its edges are") {
  const SampleSeries series({cpu(0, 0), cpu(50, 70 * kMs), cpu(100, 100 * kMs)});
  CHECK(series.increase(kCpu, 0, 50 * kMs).value == 70 * kMs);
  CHECK(series.increase(kCpu, 0, 50 * kMs).exact);
  CHECK_FALSE(series.increase(kCpu, 25 * kMs, 50 * kMs).exact);
}

TEST_CASE("a counter that ran backwards does not give a negative increase") {
  const SampleSeries series({cpu(0, 1000), cpu(100, 400)});
  CHECK(series.increase(kCpu, 0, 100 * kMs).value == 0);
}

TEST_CASE("the memory peak of an interval is the most seen in it or at its edges") {
  std::vector<Sample> samples(4);
  const std::int64_t bytes[] = {10, 500, 20, 900};
  for (int i = 0; i < 4; ++i) {
    samples[static_cast<std::size_t>(i)].time_ns = i * 100 * kMs;
    samples[static_cast<std::size_t>(i)].memory_bytes = bytes[i];
  }
  const SampleSeries series(samples);
  CHECK(series.memory_peak(0, 200 * kMs) == 500);
  CHECK(series.memory_peak(210 * kMs, 290 * kMs) == 812);  // rising to 900
  CHECK(series.memory_peak(120 * kMs, 130 * kMs) == 404);  // falling from 500
}

TEST_CASE(
    "memory is its parts without page cache, and the total only where nothing better is known") {
  CHECK(memory_used(100, 20, 3, 9999, 5000) == 123);
  CHECK(memory_used(100, {}, {}, 9999, 5000) == 100);
  CHECK(memory_used({}, {}, {}, 9000, 5000) == 4000);
  CHECK(memory_used({}, {}, {}, 9000, {}) == 9000);
  CHECK_FALSE(memory_used({}, {}, {}, {}, 5000).has_value());
}
