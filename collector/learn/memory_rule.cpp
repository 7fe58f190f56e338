#include "collector/learn/memory_rule.h"

#include <algorithm>
#include <cmath>

namespace sphase {
namespace {

constexpr double kMiB = 1 << 20;
constexpr std::int64_t kStep = 16 << 20;
constexpr int kGoodAfterKill = 3;
constexpr double kBytesMost = 1e18;  // a sum of such still fits

constexpr std::uint32_t kLowerBound =
    kObservedOom | kObservedTimeout | kObservedFailed | kObservedPartial;

double positive(const Maybe& bytes) {
  return bytes && *bytes > 0 ? std::min(static_cast<double>(*bytes), kBytesMost) : 0;
}

double with_margin(double bytes, const SiteConfig& config) {
  return bytes +
         std::max(bytes * config.memory_margin_percent / 100.0, config.memory_margin_mib * kMiB);
}

/// What was held per node on `used` nodes, held on `nodes`.
double on_nodes(double bytes, std::int64_t used, std::int64_t nodes) {
  if (used <= nodes) return bytes;
  return bytes * static_cast<double>(used) / static_cast<double>(nodes);
}

/// What a run that was killed for memory calls for; 0 = nothing is known of what it had.
double after_kill(const Observation& killed, const SiteConfig& config) {
  // Without a limit of its own the peak is what it got before it was killed.
  const double given =
      std::max(positive(killed.memory_limit_bytes), positive(killed.memory_peak_bytes));
  if (given == 0) return 0;
  return std::max(
      {1.5 * given, given + 100 * kMiB, with_margin(positive(killed.memory_peak_bytes), config)});
}

std::int64_t rounded_up(double bytes) {
  const double steps = std::ceil(std::min(bytes, kBytesMost) / static_cast<double>(kStep));
  return static_cast<std::int64_t>(steps) * kStep;
}

}  // namespace

MemoryAdvice memory_to_ask(const std::vector<Observation>& observations, std::int64_t nodes,
                           const SiteConfig& config, std::int64_t memory_most_bytes) {
  MemoryAdvice advice;
  nodes = std::max<std::int64_t>(nodes, 1);
  double need = 0, peak = 0, raise = 0;
  int good_after = 0;  // good runs with a known peak, later than the one looked at
  for (auto at = observations.rbegin(); at != observations.rend(); ++at) {
    const double seen = positive(at->memory_peak_bytes);
    if ((at->flags & kObservedOom) && good_after < kGoodAfterKill) {
      raise = std::max(raise, on_nodes(after_kill(*at, config), at->nodes_used, nodes));
    }
    if (seen == 0) continue;
    peak = std::max(peak, seen);
    need = std::max(need, with_margin(on_nodes(seen, at->nodes_used, nodes), config));
    if (at->flags & kLowerBound) continue;
    ++good_after;
    ++advice.known;
  }
  advice.raised = raise > 0;
  need = std::max(need, raise);
  if (need == 0) return advice;
  advice.peak_bytes = static_cast<std::int64_t>(peak);
  advice.need_bytes = rounded_up(need);
  advice.bytes =
      memory_most_bytes > 0 ? std::min(advice.need_bytes, memory_most_bytes) : advice.need_bytes;
  return advice;
}

}  // namespace sphase
