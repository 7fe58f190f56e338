// Values over time for charts: each holds until the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "collector/timeline/intervals.h"
#include "collector/timeline/timeline.h"

namespace sphase {

/// From this time until that of the next point; nullopt = nothing is known, which is not 0.
struct Point {
  std::int64_t time_ns = 0;
  std::optional<double> value;
};
using Steps = std::vector<Point>;  // by time; ends with nullopt

/// CPUs busy between the samples of a run. Samples closer than some kernel ticks are taken
/// together: CPU time is counted by ticks, so that a shorter look would show peaks that never were.
Steps cpus_busy(const Run& run);

/// Memory of a run, in bytes, as sampled.
Steps memory_of(const Run& run);

/// Times without a sample for much longer than the run's period, by time.
std::vector<Interval> sample_gaps(const Run& run);

/// Their sum, over those that have begun and not come to their last point. Where one of these is
/// not known, `kHidden` makes the sum unknown, and `kLeftOut` sums up the others.
enum class Unknown { kHidden, kLeftOut };
Steps sum_steps(const std::vector<const Steps*>& all, Unknown unknown);

/// At most `most` points (and never less than kThinBucket) that draw the same: the time is cut into
/// equal parts, narrower than a pixel, and of each one the first, the last, the largest, the
/// smallest and one unknown point are kept, at their own times.
inline constexpr std::size_t kThinBucket = 5;
Steps thin(const Steps& steps, std::size_t most);

}  // namespace sphase
