#include "collector/learn/cpu_curve.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A run with samples at these seconds, with so many CPU seconds used by then.
Run run_of(const std::vector<std::pair<double, double>>& samples) {
  Run run;
  std::vector<Sample> series;
  for (const auto& [time_s, cpu_s] : samples) {
    Sample sample;
    sample.time_ns = at(time_s);
    if (cpu_s >= 0) sample.cpu_time_ns = ns(cpu_s);
    series.push_back(sample);
  }
  run.samples = SampleSeries(series);
  return run;
}

}  // namespace

TEST_CASE("the busiest second counts, not the mean") {
  const Run run = run_of({{0, 0}, {1, 1}, {2, 4.5}, {3, 5}});
  const CpuCurve curve({&run});
  CHECK(*curve.busiest(at(0), at(3)) == doctest::Approx(3.5));
  CHECK(*curve.busiest(at(2), at(3)) == doctest::Approx(0.5));
}

TEST_CASE("steps side by side on a node are summed while they overlap") {
  const Run a = run_of({{0, 0}, {4, 4}}), b = run_of({{1, 0}, {2, 2}});
  const CpuCurve curve({&a, &b});
  CHECK(*curve.busiest(at(0), at(4)) == doctest::Approx(3));
  CHECK(*curve.busiest(at(2), at(4)) == doctest::Approx(1));
}

TEST_CASE("samples closer together than half a second make no rate of their own") {
  const Run run = run_of({{0, 0}, {0.01, 0.2}, {1, 1}});
  const CpuCurve curve({&run});
  CHECK(*curve.busiest(at(0), at(1)) == doctest::Approx(1));
  CHECK_FALSE(curve.busiest(at(0), at(0.4)));
}

TEST_CASE("without samples of CPU time nothing is known") {
  const Run run = run_of({{0, -1}, {5, -1}});
  CHECK_FALSE(CpuCurve({&run}).busiest(at(0), at(5)));
  CHECK_FALSE(CpuCurve({}).busiest(at(0), at(5)));
  const Run one = run_of({{0, 3}});
  CHECK_FALSE(CpuCurve({&one}).busiest(at(0), at(5)));
}

TEST_CASE("two samples of one moment and a counter that falls do no harm") {
  const Run run = run_of({{0, 0}, {1, 2}, {1, 2}, {2, 1}, {3, 2}});
  CHECK(*CpuCurve({&run}).busiest(at(0), at(3)) == doctest::Approx(2));
  CHECK_FALSE(CpuCurve({&run}).busiest(at(10), at(20)));
}
