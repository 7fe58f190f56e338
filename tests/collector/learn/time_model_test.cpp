// Source: collector/learn/time_model.cpp.
#include "collector/learn/time_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace sphase;
using doctest::Approx;

namespace {

using Terms = std::array<double, 3>;

double time_at(const Terms& t, double n) { return t[0] + t[1] / n + t[2] * n; }

std::vector<TimePoint> points_of(const Terms& t, const std::vector<double>& sizes, int each = 1) {
  std::vector<TimePoint> points;
  for (int i = 0; i < each; ++i) {
    for (const double n : sizes) points.push_back({n, time_at(t, n)});
  }
  return points;
}

/// Sum of squares of relative errors against the median of each size: what the fit minimises.
double error_of(const std::vector<TimePoint>& points, const Terms& t) {
  double sum = 0;
  for (const auto& point : points) {
    std::vector<double> same;
    for (const auto& other : points) {
      if (other.nodes == point.nodes) same.push_back(other.seconds);
    }
    std::sort(same.begin(), same.end());
    const double median = (same[(same.size() - 1) / 2] + same[same.size() / 2]) / 2;
    const double relative = (time_at(t, point.nodes) - point.seconds) / median;
    sum += relative * relative;
  }
  return sum;
}

}  // namespace

TEST_CASE("without points a model knows nothing") {
  const auto model = TimeModel::fit({});
  CHECK_FALSE(model.known());
  CHECK_FALSE(model.has_shape());
  CHECK(model.at(4).expected == 0);
  CHECK(model.at(4).high == 0);
  CHECK(model.nodes_least() == 0);
}

TEST_CASE("what is no measurement is dropped") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  CHECK_FALSE(TimeModel::fit({{1, 0},
                              {1, -3},
                              {1, nan},
                              {1, inf},
                              {nan, 1},
                              {inf, 1},
                              {0, 1},
                              {-2, 1},
                              {1, 1e300},
                              {1e300, 1}})
                  .known());
  const auto model = TimeModel::fit({{2, 10}, {1, nan}, {2, inf}});
  CHECK(model.known());
  CHECK_FALSE(model.has_shape());
  CHECK(model.at(2).expected == 10);
}

TEST_CASE("one run says half to double") {
  const auto model = TimeModel::fit({{4, 100}});
  CHECK(model.at(4).expected == 100);
  CHECK(model.at(4).low == Approx(50));
  CHECK(model.at(4).high == Approx(200));
  CHECK(model.at(1).expected == 100);
}

TEST_CASE("several runs of one size give their median, and an interval from their spread") {
  const auto model = TimeModel::fit({{2, 100}, {2, 104}, {2, 96}, {2, 101}, {2, 99}});
  CHECK_FALSE(model.has_shape());
  CHECK(model.at(2).expected == 100);
  CHECK(model.at(2).low > 90);
  CHECK(model.at(2).low < 97);
  CHECK(model.at(2).high > 103);
  CHECK(model.at(2).high < 111);
}

TEST_CASE("runs that agree exactly still leave some doubt") {
  const auto model = TimeModel::fit({{1, 60}, {1, 60}, {1, 60}, {1, 60}});
  CHECK(model.at(1).low < 59.5);
  CHECK(model.at(1).high > 60.5);
}

TEST_CASE("the terms that made the times are found again") {
  for (const Terms& truth : {Terms{10, 0, 0}, Terms{0, 100, 0}, Terms{10, 100, 0}, Terms{0, 100, 2},
                             Terms{5, 200, 1.5}, Terms{20, 0, 3}}) {
    const auto model = TimeModel::fit(points_of(truth, {1, 2, 4, 8, 16}, 2));
    CAPTURE(truth[0]);
    CAPTURE(truth[1]);
    CAPTURE(truth[2]);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(model.coefficients()[i] == Approx(truth[i]).epsilon(1e-6).scale(1));
    }
  }
}

TEST_CASE("two sizes never give a term that grows with nodes") {
  const auto model = TimeModel::fit(points_of({5, 0, 10}, {1, 4}, 3));
  CHECK(model.has_shape());
  CHECK(model.coefficients()[2] == 0);
}

TEST_CASE("a term that explains nothing is left out") {
  auto points = points_of({50, 0, 0}, {1, 2, 4, 8}, 2);
  points[0].seconds *= 1.0002;  // far below what could be measured
  const auto model = TimeModel::fit(points);
  CHECK(model.coefficients()[1] == 0);
  CHECK(model.coefficients()[2] == 0);
}

TEST_CASE("no other non-negative terms fit better") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 60; ++round) {
    // Times without any law and within Huber's limit of none: any answer must still be the best
    // one.
    const std::vector<double> sizes = {1, 2, 3, 5, 8};
    std::vector<TimePoint> points;
    for (const double n : sizes) points.push_back({n, 100 * (1 + 0.02 * unit(random))});
    const auto fitted = TimeModel::fit(points).coefficients();
    const double least = error_of(points, fitted);
    for (int i = 0; i < 400; ++i) {
      Terms other = fitted;
      for (double& term : other) term = std::max(0.0, term + (unit(random) - 0.5) * 4);
      // Ties within 0.1 % per run go to the simpler model, and Huber's weights move it a little.
      CHECK(error_of(points, other) > least - 5 * (1e-6 + 1e-5));
    }
  }
}

TEST_CASE("one wild run among many hardly moves the model") {
  for (const double factor : {0.1, 5.0, 50.0}) {
    auto points = points_of({10, 100, 0}, {1, 2, 4, 8}, 4);
    points[5].seconds *= factor;
    const auto model = TimeModel::fit(points);
    CAPTURE(factor);
    for (const double n : {1, 2, 4, 8}) {
      CHECK(model.at(n).expected == Approx(time_at({10, 100, 0}, n)).epsilon(0.03));
    }
  }
}

TEST_CASE("the interval is wider between sizes than at them, and nothing changes above the last") {
  auto points = points_of({10, 100, 0}, {2, 8}, 4);
  points[0].seconds *= 1.1;
  points[3].seconds *= 0.9;
  const auto model = TimeModel::fit(points);
  const auto ratio = [&](double n) { return model.at(n).high / model.at(n).low; };
  CHECK(ratio(4) > ratio(2) * 1.01);
  CHECK(ratio(4) > ratio(8) * 1.01);
  CHECK(ratio(1) > ratio(2));
  CHECK(model.at(100).expected == model.at(8).expected);
  CHECK(ratio(100) == Approx(ratio(8)));
}

TEST_CASE("no more runs than terms: half to double, since nothing is known of their spread") {
  const auto model = TimeModel::fit(points_of({10, 100, 0}, {1, 4}));
  CHECK(model.at(4).high == Approx(2 * model.at(4).expected));
}

TEST_CASE("about 80 % of the next runs lie within the interval") {
  std::mt19937 random(11);
  std::lognormal_distribution<double> noise(0, 0.1);
  for (const int each : {2, 6, 12}) {
    int inside = 0;
    constexpr int kRounds = 300;
    for (int round = 0; round < kRounds; ++round) {
      auto points = points_of({20, 200, 0.5}, {1, 2, 4, 8, 16}, each);
      for (auto& point : points) point.seconds *= noise(random);
      const auto range = TimeModel::fit(points).at(4);
      const double next = time_at({20, 200, 0.5}, 4) * noise(random);
      if (next >= range.low && next <= range.high) ++inside;
    }
    const double share = static_cast<double>(inside) / kRounds;
    CAPTURE(each);
    CHECK(share > 0.74);
    CHECK(share < 0.86);
  }
}

TEST_CASE("whatever comes in, what comes out is finite, ordered and the same each time") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-12, 14), unit(0, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TimePoint> points(1 + random() % 12);
    for (auto& point : points) {
      point = {std::floor(std::pow(10, 4 * unit(random))), std::pow(10, exponent(random))};
      if (random() % 3 == 0) point.nodes = static_cast<double>(1 + random() % 3);
      if (random() % 20 == 0) point.seconds = std::nan("");
    }
    const auto model = TimeModel::fit(points);
    std::shuffle(points.begin(), points.end(), random);
    const auto again = TimeModel::fit(points);
    CHECK(again.coefficients() == model.coefficients());
    for (const double term : model.coefficients()) CHECK((std::isfinite(term) && term >= 0));
    for (const double n : {0.0, 1.0, 3.0, 1e6, std::nan("")}) {
      const auto range = model.at(n);
      CHECK((std::isfinite(range.expected) && std::isfinite(range.high)));
      CHECK((range.low >= 0 && range.low <= range.expected && range.expected <= range.high));
      if (model.known()) CHECK(range.expected > 0);
    }
  }
}
