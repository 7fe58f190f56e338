#include "collector/timeline/intervals.h"

#include <algorithm>

namespace sphase {

std::vector<Interval> unite(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> united;
  for (const auto& [begin, end] : intervals) {
    if (end <= begin) continue;
    if (!united.empty() && begin <= united.back().second) {
      united.back().second = std::max(united.back().second, end);
    } else {
      united.emplace_back(begin, end);
    }
  }
  return united;
}

std::int64_t total_length(const std::vector<Interval>& united) {
  std::int64_t length = 0;
  for (const auto& [begin, end] : united) length += end - begin;
  return length;
}

std::vector<Interval> complement(Interval whole, const std::vector<Interval>& united) {
  std::vector<Interval> rest;
  std::int64_t at = whole.first;
  for (const auto& [begin, end] : united) {
    if (begin > at && at < whole.second) rest.emplace_back(at, std::min(begin, whole.second));
    at = std::max(at, end);
  }
  if (at < whole.second) rest.emplace_back(at, whole.second);
  return rest;
}

}  // namespace sphase
