#include "collector/ship/clock_filter.h"

#include <algorithm>
#include <cstdlib>

namespace sphase {
namespace {

/// In the year 2116. Differences of times up to here, and sums of two of them, have room.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

}  // namespace

std::int64_t ClockFilter::band(const Exchange& exchange, std::int64_t now_ns) {
  const std::int64_t age_ns = std::max<std::int64_t>(0, now_ns - exchange.time_ns);
  return exchange.delay_ns / 2 + age_ns / 1'000'000 * kDriftPerMillion + 1000;
}

void ClockFilter::add(const ClockTimes& times, std::int64_t back_ns, std::int64_t now_ns) {
  for (const auto ns : {times.sent_ns, times.came_ns, times.answered_ns, back_ns}) {
    if (ns < 0 || ns > kLatestNs) return;
  }
  const std::int64_t delay_ns = (back_ns - times.sent_ns) - (times.answered_ns - times.came_ns);
  if (delay_ns < 0 || times.answered_ns < times.came_ns) return;
  // Ours minus theirs: the opposite of RFC 5905's theta.
  const std::int64_t there_ns = times.sent_ns - times.came_ns;
  const std::int64_t back_offset_ns = back_ns - times.answered_ns;
  // The clocks drifted while it was under way, too: it is as old as its question.
  const Exchange fresh{there_ns + (back_offset_ns - there_ns) / 2, delay_ns,
                       now_ns - std::max<std::int64_t>(0, back_ns - times.sent_ns)};
  // Further from the others than all that is not sure: a clock was set.
  std::erase_if(kept_, [&](const Exchange& other) {
    return now_ns - other.time_ns > kOldestNs || std::llabs(other.offset_ns - fresh.offset_ns) >
                                                     band(other, now_ns) + band(fresh, now_ns);
  });
  kept_.push_back(fresh);
  if (kept_.size() > kKept) kept_.pop_front();
}

std::optional<ClockOffset> ClockFilter::best(std::int64_t now_ns) const {
  const auto best = std::min_element(
      kept_.begin(), kept_.end(),
      [&](const Exchange& a, const Exchange& b) { return band(a, now_ns) < band(b, now_ns); });
  if (best == kept_.end()) return std::nullopt;
  return ClockOffset{best->offset_ns, band(*best, now_ns)};
}

}  // namespace sphase
