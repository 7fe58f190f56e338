// CPU time of everything on one node over time, from the samples of the steps there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// The sum over the steps of a node, linear between their samples. Cost: n log n in the samples to
/// build, the samples in the interval to ask.
class CpuCurve {
 public:
  /// Shorter windows show how the kernel accounts (a tick is 4 ms), not how many CPUs are needed.
  static constexpr std::int64_t kWindowNs = 500'000'000;

  /// `runs` are all on the same node.
  explicit CpuCurve(const std::vector<const Run*>& runs);

  /// Most CPUs busy over a window that begins and ends at samples (or at the interval's edges), at
  /// least half a second apart. nullopt: no such window, or no samples with CPU time.
  std::optional<double> busiest(std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  struct Point {
    std::int64_t time_ns;
    double cpu_ns;
  };
  double at(std::int64_t time_ns) const;

  std::vector<Point> points_;
};

}  // namespace sphase
