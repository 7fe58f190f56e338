#include "collector/timeline/node_spans.h"

#include <algorithm>
#include <map>

namespace sphase {
namespace {

constexpr std::int64_t kRecordSlackNs = 1'000'000'000;

bool touches(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) {
  return run.begin_ns < end_ns && run.end_ns > begin_ns;
}

using RunsOf = std::map<std::string, std::vector<const Run*>>;

/// A run that was there in the interval, to ask for what was allocated.
const Run* any_run(const std::vector<const Run*>& runs, std::int64_t begin_ns,
                   std::int64_t end_ns) {
  for (const Run* run : runs) {
    if (run->job_cpus && touches(*run, begin_ns, end_ns)) return run;
  }
  return nullptr;
}

/// What is left of a total after the nodes that know their part, shared evenly by the others. Right
/// where they are alike, which is what Slurm gives unless it is asked for otherwise.
void share_rest(const Maybe& total, Maybe NodeSpan::*part, std::vector<NodeSpan>& spans,
                std::size_t first) {
  if (!total) return;
  std::int64_t rest = *total, unknown = 0;
  for (std::size_t i = first; i < spans.size(); ++i) {
    rest -= (spans[i].*part).value_or(0);
    unknown += spans[i].*part ? 0 : 1;
  }
  if (unknown == 0 || rest <= 0 || rest % unknown != 0) return;
  for (std::size_t i = first; i < spans.size(); ++i) {
    if (!(spans[i].*part)) spans[i].*part = rest / unknown;
  }
}

bool holds(const Allocation& allocation, const std::string& node) {
  return std::any_of(allocation.nodes.begin(), allocation.nodes.end(),
                     [&](const AllocatedNode& held) { return held.node == node; });
}

/// When an allocation really ended. Records have whole seconds: what a step on it saw within that
/// second is nearer; before a resize, only on the nodes that were given back.
std::int64_t end_of(const Timeline& timeline, std::size_t i) {
  const Allocation& allocation = timeline.allocations[i];
  const std::int64_t end_ns = allocation.end_ns.value_or(timeline.end_ns);
  const bool last = i + 1 == timeline.allocations.size();
  std::int64_t seen_ns = last ? timeline.end_ns : end_ns;
  for (const auto& run : timeline.runs) {
    if (last || run.end_ns <= seen_ns || run.end_ns > end_ns + kRecordSlackNs) continue;
    if (holds(allocation, run.node) && !holds(timeline.allocations[i + 1], run.node)) {
      seen_ns = run.end_ns;
    }
  }
  return seen_ns > end_ns && seen_ns - end_ns <= kRecordSlackNs ? seen_ns : end_ns;
}

void fill_from_runs(NodeSpan& span, const std::vector<const Run*>& runs) {
  if (span.cpus && span.memory_bytes) return;
  const Run* run = any_run(runs, span.begin_ns, span.end_ns);
  if (run == nullptr) return;
  if (!span.cpus) span.cpus = run->job_cpus;
  if (!span.memory_bytes) span.memory_bytes = run->job_memory_bytes;
}

/// The spans without the times in which the job was suspended.
std::vector<NodeSpan> while_running(const std::vector<NodeSpan>& spans,
                                    const std::vector<Interval>& suspended) {
  std::vector<NodeSpan> running;
  for (const auto& span : spans) {
    for (const auto& [begin_ns, end_ns] : complement({span.begin_ns, span.end_ns}, suspended)) {
      running.push_back({span.node, begin_ns, end_ns, span.cpus, span.memory_bytes});
    }
  }
  return running;
}

}  // namespace

std::vector<Interval> suspended_times(const Timeline& timeline) {
  std::vector<Interval> times;
  for (const auto& suspension : timeline.suspensions) {
    times.emplace_back(suspension.begin_ns, suspension.end_ns.value_or(timeline.end_ns));
  }
  return unite(std::move(times));
}

std::vector<NodeSpan> node_spans(const Timeline& timeline) {
  std::vector<NodeSpan> spans;
  RunsOf runs_of;
  for (const auto& run : timeline.runs) runs_of[run.node].push_back(&run);
  std::int64_t begin_ns = 0;
  for (std::size_t i = 0; i < timeline.allocations.size(); ++i) {
    const Allocation& allocation = timeline.allocations[i];
    const std::size_t first = spans.size();
    begin_ns = std::max(begin_ns, allocation.begin_ns);
    const std::int64_t end_ns = end_of(timeline, i);
    for (const auto& node : allocation.nodes) {
      NodeSpan span{node.node, begin_ns, end_ns, node.cpus, node.memory_bytes};
      fill_from_runs(span, runs_of[node.node]);
      spans.push_back(std::move(span));
    }
    begin_ns = end_ns;
    share_rest(allocation.cpus, &NodeSpan::cpus, spans, first);
    share_rest(allocation.memory_bytes, &NodeSpan::memory_bytes, spans, first);
  }
  const auto suspended = suspended_times(timeline);
  return suspended.empty() ? spans : while_running(spans, suspended);
}

}  // namespace sphase
