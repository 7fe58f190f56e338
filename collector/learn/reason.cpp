#include "collector/learn/reason.h"

#include <fmt/format.h>

namespace sphase {
namespace {

std::string needed(const RunCounts& counts, const SiteConfig& config) {
  return fmt::format("{} of the {} that {} needed", counts.good, counted(config.runs_least, "run"),
                     config.runs_least == 1 ? "is" : "are");
}

/// What the newest good run made of its nodes.
std::string nodes_used(const std::vector<Observation>& job) {
  for (auto at = job.rbegin(); at != job.rend(); ++at) {
    if (at->flags & (kObservedOom | kObservedTimeout | kObservedFailed)) continue;
    if (at->nodes <= 1) return " on 1 node";
    if (at->nodes_used >= at->nodes) return fmt::format("; all {} nodes were used", at->nodes);
    return fmt::format("; {} of {} nodes {} used", at->nodes_used, at->nodes,
                       at->nodes_used == 1 ? "was" : "were");
  }
  return "";
}

std::string others(const RunCounts& counts) {
  std::string text;
  const auto add = [&](std::int64_t number, const char* what) {
    if (number > 0) text += fmt::format("; {} {}", number, what);
  };
  add(counts.killed, counts.killed == 1 ? "was killed for memory" : "were killed for memory");
  add(counts.timeouts, "reached the time limit");
  add(counts.failed, "failed or ended early: of no use for times");
  return text;
}

}  // namespace

std::string counted(std::int64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string reason_of(const ProfileAdvice& advice, const RunCounts& counts,
                      const std::vector<Observation>& job, const SiteConfig& config) {
  if (job.empty()) return "no run is known yet";
  if (!advice.enough) return needed(counts, config) + " before advice is given" + others(counts);
  if (advice.time_limit_s == 0 && (advice.flags & kAdviceOom)) {
    return "a run was killed for memory, so memory is raised at once; " + needed(counts, config) +
           " for more";
  }
  std::string text = counted(counts.good, "run");
  text += advice.job.model.has_shape()
              ? fmt::format(" on {} to {} nodes", advice.job.model.nodes_least(),
                            advice.job.model.nodes_most())
              : nodes_used(job);
  return text + others(counts);
}

}  // namespace sphase
