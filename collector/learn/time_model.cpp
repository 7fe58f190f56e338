#include "collector/learn/time_model.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

namespace sphase {
namespace {

using Coefficients = std::array<double, 3>;

constexpr double kHalfToDouble = 0.6931471805599453;  // ln 2
constexpr double kWidthMost = 6.907755278982137;      // ln 1000: keeps every bound finite
constexpr double kSpreadLeast = 0.01;  // runs that agree better than 1 % do so by chance
/// Fits whose relative errors differ by less than this are as good as each other.
constexpr double kTie = 0.001;
constexpr int kRounds = 30;
constexpr double kHuber = 1.345;  // robust standard deviations
/// Share of the variance of normal errors that Huber's weights leave: E[min(r^2, k|r|)] = 2Φ(k)
/// - 1.
constexpr double kWeighted = 0.8214;

bool measured(const TimePoint& point) {
  // Far beyond any cluster and any job: keeps products in range.
  return std::isfinite(point.nodes) && point.nodes >= 1 && point.nodes <= 1e9 &&
         std::isfinite(point.seconds) && point.seconds >= 1e-9 && point.seconds <= 1e12;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double value_at(const Coefficients& t, double nodes) { return t[0] + t[1] / nodes + t[2] * nodes; }

/// One run, its time divided by the median of its size: errors become relative ones, and a run that
/// is far off does not decide by itself how much it counts.
struct Row {
  double nodes, seconds, scale;
};

std::vector<Row> rows_of(const std::vector<TimePoint>& sorted, std::vector<double>& sizes) {
  std::vector<Row> rows;
  for (auto at = sorted.begin(); at != sorted.end();) {
    auto end = at;
    std::vector<double> times;
    while (end != sorted.end() && end->nodes == at->nodes) times.push_back((end++)->seconds);
    const double scale = median(times);
    for (const double seconds : times) rows.push_back({at->nodes, seconds, scale});
    sizes.push_back(at->nodes);
    at = end;
  }
  return rows;
}

struct Solution {
  Coefficients terms{};
  double error = 0;  // weighted sum of squares of the relative errors
  int used = 0;      // terms that are not 0
};

/// Least squares over the terms in `set` (bit i = term i); nullopt if one comes out negative.
std::optional<Solution> solve(const std::vector<Row>& rows, const std::vector<double>& weights,
                              unsigned set) {
  std::array<int, 3> column{};
  int columns = 0;
  for (int term = 0; term < 3; ++term) column[term] = set & (1u << term) ? columns++ : -1;
  const auto height = static_cast<Eigen::Index>(rows.size());
  Eigen::MatrixXd left(height, columns);
  Eigen::VectorXd right(height);
  for (Eigen::Index i = 0; i < height; ++i) {
    const Row& row = rows[static_cast<std::size_t>(i)];
    const double root = std::sqrt(weights[static_cast<std::size_t>(i)]);
    const Coefficients basis = {1, 1 / row.nodes, row.nodes};
    for (int term = 0; term < 3; ++term) {
      if (column[term] >= 0) left(i, column[term]) = root * basis[term] / row.scale;
    }
    right(i) = root * row.seconds / row.scale;
  }
  // Columns of like size, so that the rank is judged by shape and not by unit.
  const Eigen::VectorXd norms = left.colwise().norm().cwiseMax(1e-300);
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(left * norms.cwiseInverse().asDiagonal());
  if (qr.rank() < columns) return std::nullopt;
  const Eigen::VectorXd scaled = qr.solve(right);
  const Eigen::VectorXd found = scaled.cwiseQuotient(norms);
  if (!found.allFinite() || (found.array() <= 0).any()) return std::nullopt;
  Solution solution;
  solution.used = columns;
  for (int term = 0; term < 3; ++term) {
    if (column[term] >= 0) solution.terms[term] = found(column[term]);
  }
  solution.error = (left * found - right).squaredNorm();
  return solution;
}

/// Non-negative least squares, exact: the best solution over every set of terms is the one whose
/// terms are all positive with the least error (Lawson and Hanson 1974, ch. 23, by enumeration).
/// Where a set of fewer terms is as good, it is taken.
Solution best_solution(const std::vector<Row>& rows, const std::vector<double>& weights,
                       std::size_t sizes) {
  constexpr std::array<unsigned, 7> kSets = {0b001, 0b010, 0b100, 0b011, 0b110, 0b101, 0b111};
  std::vector<Solution> found;
  for (const unsigned set : kSets) {
    if ((set & 0b010) && sizes < 2) continue;
    if ((set & 0b100) && sizes < 3) continue;
    if (auto solution = solve(rows, weights, set)) found.push_back(*solution);
  }
  const auto less = [](const Solution& a, const Solution& b) { return a.error < b.error; };
  const double least = std::min_element(found.begin(), found.end(), less)->error;
  double weight = 0;
  for (const double w : weights) weight += w;
  const double tie = least + weight * kTie * kTie;
  Solution best;
  best.used = 4;
  for (const auto& solution : found) {
    if (solution.error > tie) continue;
    if (solution.used < best.used || (solution.used == best.used && less(solution, best))) {
      best = solution;
    }
  }
  return best;
}

/// What is minimised.
std::vector<double> relative_errors(const std::vector<Row>& rows, const Coefficients& terms) {
  std::vector<double> out;
  out.reserve(rows.size());
  for (const auto& row : rows)
    out.push_back((row.seconds - value_at(terms, row.nodes)) / row.scale);
  return out;
}

/// The same as logarithms, so that bounds made from them are never negative.
std::vector<double> logarithmic_errors(const std::vector<Row>& rows, const Coefficients& terms) {
  std::vector<double> out;
  out.reserve(rows.size());
  for (const auto& row : rows) out.push_back(std::log(row.seconds / value_at(terms, row.nodes)));
  return out;
}

/// Huber's weights: 1 up to kHuber robust standard deviations, then falling as 1/|r|. False: they
/// are what they were.
bool reweight(const std::vector<double>& residual, std::vector<double>& weights) {
  std::vector<double> sizes;
  sizes.reserve(residual.size());
  for (const double r : residual) sizes.push_back(std::abs(r));
  const double limit = kHuber * std::max(1.4826 * median(sizes), kSpreadLeast);
  double change = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = sizes[i] <= limit ? 1 : limit / sizes[i];
    change = std::max(change, std::abs(weight - weights[i]));
    weights[i] = weight;
  }
  return change > 1e-6;
}

/// The 0.90 quantile of Student's t: 80 % lie within ± it. Above 10 degrees of freedom by the
/// expansion in Abramowitz and Stegun 26.7.5, to 0.001.
double student_80(std::size_t freedom) {
  constexpr std::array<double, 11> kTable = {0,     3.078, 1.886, 1.638, 1.533, 1.476,
                                             1.440, 1.415, 1.397, 1.383, 1.372};
  if (freedom < kTable.size()) return kTable.at(freedom);
  const double v = static_cast<double>(freedom);
  return 1.28155 + 0.84659 / v + 0.5710 / (v * v);
}

double width_of(const std::vector<double>& residual, const std::vector<double>& weights,
                int terms) {
  const std::size_t points = residual.size();
  if (points <= static_cast<std::size_t>(terms)) return kHalfToDouble;
  const std::size_t freedom = points - static_cast<std::size_t>(terms);
  double sum = 0;
  for (std::size_t i = 0; i < points; ++i) sum += weights[i] * residual[i] * residual[i];
  sum /= kWeighted;
  const double spread = std::max(std::sqrt(sum / static_cast<double>(freedom)), kSpreadLeast);
  // Of the next run: its own spread, and that of the fit (on average terms/points of the former).
  const double own = std::sqrt(1 + static_cast<double>(terms) / static_cast<double>(points));
  return std::min(student_80(freedom) * spread * own, kWidthMost);
}

}  // namespace

TimeModel TimeModel::fit(std::vector<TimePoint> points) {
  TimeModel model;
  std::erase_if(points, [](const TimePoint& point) { return !measured(point); });
  if (points.empty()) return model;
  std::sort(points.begin(), points.end(), [](const TimePoint& a, const TimePoint& b) {
    return a.nodes != b.nodes ? a.nodes < b.nodes : a.seconds < b.seconds;
  });
  const auto rows = rows_of(points, model.sizes_);
  std::vector<double> weights(rows.size(), 1.0);
  Solution solution;
  if (!model.has_shape()) {
    solution = {{rows.front().scale, 0, 0}, 0, 1};
    reweight(relative_errors(rows, solution.terms), weights);
  } else {
    // From the medians, so that the first weights are not those that a wild run has bent.
    std::vector<Row> medians = rows;
    for (auto& row : medians) row.seconds = row.scale;
    solution = best_solution(medians, weights, model.sizes_.size());
    for (int round = 0; round < kRounds; ++round) {
      if (!reweight(relative_errors(rows, solution.terms), weights) && round > 0) break;
      solution = best_solution(rows, weights, model.sizes_.size());
    }
  }
  model.coefficients_ = solution.terms;
  model.width_ = width_of(logarithmic_errors(rows, solution.terms), weights, solution.used);
  return model;
}

TimeRange TimeModel::at(double nodes) const {
  if (!known()) return {};
  const double n = std::isnan(nodes) ? nodes_most() : std::clamp(nodes, 1.0, nodes_most());
  const double expected = value_at(coefficients_, n);
  double gap = kWidthMost;  // to the nearest size seen, in doublings
  for (const double size : sizes_) gap = std::min(gap, std::abs(std::log2(n / size)));
  if (!has_shape()) gap = 0;
  const double factor = std::exp(std::min(width_ * (1 + gap), kWidthMost));
  return {expected, expected / factor, expected * factor};
}

}  // namespace sphase
