#include "collector/learn/cpu_curve.h"

#include <algorithm>

namespace sphase {
namespace {

struct Bend {
  std::int64_t time_ns;
  double slope;  // CPUs more or less busy from here on
};

void add_bends(const Run& run, std::vector<Bend>& bends) {
  const Sample* last = nullptr;
  for (const auto& sample : run.samples.samples()) {
    if (!sample.cpu_time_ns) continue;
    if (last != nullptr && sample.time_ns <= last->time_ns) continue;  // two kinds at one time
    if (last != nullptr) {
      const auto cpu =
          static_cast<double>(std::max<std::int64_t>(0, *sample.cpu_time_ns - *last->cpu_time_ns));
      const double slope = cpu / static_cast<double>(sample.time_ns - last->time_ns);
      bends.push_back({last->time_ns, slope});
      bends.push_back({sample.time_ns, -slope});
    }
    last = &sample;
  }
}

}  // namespace

CpuCurve::CpuCurve(const std::vector<const Run*>& runs) {
  std::vector<Bend> bends;
  for (const Run* run : runs) add_bends(*run, bends);
  std::sort(bends.begin(), bends.end(),
            [](const Bend& a, const Bend& b) { return a.time_ns < b.time_ns; });
  double slope = 0, cpu_ns = 0;
  for (const auto& bend : bends) {
    if (points_.empty() || points_.back().time_ns != bend.time_ns) {
      if (!points_.empty()) {
        cpu_ns += slope * static_cast<double>(bend.time_ns - points_.back().time_ns);
      }
      points_.push_back({bend.time_ns, cpu_ns});
    }
    slope += bend.slope;
  }
}

double CpuCurve::at(std::int64_t time_ns) const {
  const auto after =
      std::lower_bound(points_.begin(), points_.end(), time_ns,
                       [](const Point& point, std::int64_t time) { return point.time_ns < time; });
  if (after == points_.end()) return points_.back().cpu_ns;
  if (after == points_.begin() || after->time_ns == time_ns) return after->cpu_ns;
  const Point& before = *(after - 1);
  const double part = static_cast<double>(time_ns - before.time_ns) /
                      static_cast<double>(after->time_ns - before.time_ns);
  return before.cpu_ns + (after->cpu_ns - before.cpu_ns) * part;
}

std::optional<double> CpuCurve::busiest(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (points_.empty()) return std::nullopt;
  begin_ns = std::max(begin_ns, points_.front().time_ns);
  end_ns = std::min(end_ns, points_.back().time_ns);
  if (end_ns - begin_ns < kWindowNs) return std::nullopt;
  std::vector<Point> inside{{begin_ns, at(begin_ns)}};
  auto next =
      std::upper_bound(points_.begin(), points_.end(), begin_ns,
                       [](std::int64_t time, const Point& point) { return time < point.time_ns; });
  for (; next != points_.end() && next->time_ns < end_ns; ++next) inside.push_back(*next);
  inside.push_back({end_ns, at(end_ns)});
  double most = 0;
  std::size_t to = 0;
  for (const auto& from : inside) {
    while (to < inside.size() && inside[to].time_ns - from.time_ns < kWindowNs) ++to;
    if (to == inside.size()) break;
    most = std::max(most, (inside[to].cpu_ns - from.cpu_ns) /
                              static_cast<double>(inside[to].time_ns - from.time_ns));
  }
  return most;
}

}  // namespace sphase
