// Time of a phase over the number of nodes.
#pragma once

#include <array>
#include <cstddef>
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
  /// Fits; an empty list gives a model that knows nothing. Points that are no measurement (not
  /// finite, not positive) are dropped. One run in many that is far off weighs little: Huber's
  /// weights (Huber, Ann. Math. Stat. 35, 1964, §2). Cost: linear in the points, 2 ms for 200.
  static TimeModel fit(std::vector<TimePoint> points);

  bool known() const { return !sizes_.empty(); }
  /// More than one size was seen: sizes between the smallest and the largest can be predicted.
  bool has_shape() const { return sizes_.size() > 1; }
  double nodes_least() const { return known() ? sizes_.front() : 0; }
  double nodes_most() const { return known() ? sizes_.back() : 0; }
  /// One run, or no more runs than the model has terms: 0.5x to 2x. More: from the spread of the
  /// residuals (Student's t, 80 %), wider between sizes that were seen than at them. Above the
  /// largest size T stays as it is there. All zero where nothing is known.
  TimeRange at(double nodes) const;
  const std::array<double, 3>& coefficients() const { return coefficients_; }

 private:
  std::array<double, 3> coefficients_{};  // a, b, c
  std::vector<double> sizes_;             // that were seen, ascending
  double width_ = 0;                      // of the interval at a size seen: factor exp(±width)
};

}  // namespace sphase
