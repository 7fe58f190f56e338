// Time of a phase over the number of nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sphase {

/// An expected value with the bounds of an 80 % interval. Unit: s.
struct TimeRange {
  double expected = 0, low = 0, high = 0;
};

struct TimePoint {
  double nodes = 1;  // that did the work
  double seconds = 0;
};

/// T(n) = a + b/n + c·n with a, b, c >= 0 (Ernest, Venkataraman et al., NSDI 2016, §3.2, without
/// its logarithm), by non-negative least squares on relative errors. With one size there is nothing
/// to fit: T is the median there, and no other size is known.
class TimeModel {
 public:
  /// Fits; an empty list gives a model that knows nothing.
  static TimeModel fit(std::vector<TimePoint> points);

  bool known() const { return sizes_ > 0; }
  /// More than one size was seen: sizes between the smallest and the largest can be predicted.
  bool has_shape() const { return sizes_ > 1; }
  double nodes_least() const { return nodes_least_; }
  double nodes_most() const { return nodes_most_; }
  /// One run: 0.5x to 2x. More: from the spread of the residuals (Student's t, 80 %), wider between
  /// sizes that were seen than at them.
  TimeRange at(double nodes) const;
  const std::array<double, 3>& coefficients() const { return coefficients_; }

 private:
  std::array<double, 3> coefficients_{};  // a, b, c
  double nodes_least_ = 0, nodes_most_ = 0;
  double spread_ = 0;  // standard deviation of the relative residuals
  std::int64_t points_ = 0, sizes_ = 0;
};

}  // namespace sphase
