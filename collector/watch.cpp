#include "collector/watch.h"

#include <algorithm>
#include <charconv>

namespace sphase {
namespace {

constexpr std::int64_t kWaitMostS = 15 * 60, kIntervalMostS = 86400;

}  // namespace

std::optional<std::int64_t> parse_interval(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || value <= 0 || value > kIntervalMostS) return std::nullopt;
  const std::string unit(stop, end);
  if (unit == "m") value *= 60;
  if (unit == "h") value *= 3600;
  const bool known = unit.empty() || unit == "s" || unit == "m" || unit == "h";
  return known && value <= kIntervalMostS ? std::optional(value) : std::nullopt;
}

std::int64_t Backoff::after(bool failed) {
  const std::int64_t most = std::max(kWaitMostS, interval_s_);
  wait_s_ = failed ? std::min(most, failing_ ? 2 * wait_s_ : 2 * interval_s_) : interval_s_;
  failing_ = failed;
  return wait_s_;
}

std::vector<std::string> ProblemLog::lines_for(const std::vector<std::string>& problems) {
  std::set<std::string> now;
  for (const auto& problem : problems) {
    if (now.size() < kMost) now.insert(problem);
  }
  std::vector<std::string> lines;
  for (const auto& problem : now) {
    if (!open_.contains(problem)) lines.push_back(problem);
  }
  for (const auto& problem : open_) {
    if (!now.contains(problem)) lines.push_back("no longer: " + problem);
  }
  open_ = std::move(now);
  return lines;
}

}  // namespace sphase
