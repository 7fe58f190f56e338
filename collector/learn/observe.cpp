// Timeline to observations: see observation.h.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "collector/learn/audit.h"
#include "collector/learn/cpu_curve.h"
#include "collector/learn/observation.h"
#include "collector/timeline/intervals.h"
#include "collector/timeline/node_spans.h"
#include "common/profile_key.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kCpuShareLeast = 1.0 / 50, kMemoryShareLeast = 1.0 / 5;
/// Of a phase with more instances the longest ones are searched for the busiest half second.
constexpr std::size_t kIntervalsSearched = 256;
/// A step that was killed when it had used so much of its memory was killed for it.
constexpr double kOomShareLeast = 0.9;
/// What shows that a row's phase was cut off rather than ended.
constexpr std::uint32_t kCutOff = kUnclosed | kRecorderLost | kOpen;

using Curves = std::map<std::string, CpuCurve>;  // by node

/// One phase on its way to an observation: all rows and instances of its path.
struct PathParts {
  UsageRow row;                     // counters summed over the steps
  std::vector<Interval> intervals;  // of the instances that are not folded
  std::int64_t folded_ns = 0;
  std::set<std::string> steps;
};
using Paths = std::map<std::string, PathParts>;

bool is_phase(const UsageRow& row) {
  return row.kind == UsageRow::Kind::kJobPhase || row.kind == UsageRow::Kind::kTaskPhase;
}

/// Calls `use` with every phase that no other phase of its own kind is around. `rows` depth first.
template <typename Use>
void for_each_top(const std::vector<UsageRow>& rows, Use use) {
  std::vector<const UsageRow*> around;  // by level
  for (const auto& row : rows) {
    const auto level = static_cast<std::size_t>(row.level);
    around.resize(std::min(around.size(), level));
    const bool nested = !around.empty() && around.back()->kind == row.kind;
    if (is_phase(row) && !nested) use(row);
    around.push_back(&row);
  }
}

void add_counters(UsageRow& into, const UsageRow& row) {
  into.begin_ns = std::min(into.begin_ns, row.begin_ns);
  into.end_ns = std::max(into.end_ns, row.end_ns);
  into.tasks = std::max(into.tasks, row.tasks);
  into.flags |= row.flags;
  add(into.cpu_time_ns, row.cpu_time_ns, into.flags);
  if (row.memory_peak_bytes) {
    into.memory_peak_bytes = std::max(into.memory_peak_bytes.value_or(0), *row.memory_peak_bytes);
  }
  merge_nodes(into.nodes, row.nodes);
}

/// A path that the script marked is the script's: what tasks mark by the same name lies in it.
Paths collect_paths(const Timeline& timeline) {
  std::set<std::string> of_script;
  for_each_top(timeline.rows, [&](const UsageRow& row) {
    if (row.kind == UsageRow::Kind::kJobPhase) of_script.insert(row.path);
  });
  const auto hidden = [&](const UsageRow& row) {
    return row.kind == UsageRow::Kind::kTaskPhase && of_script.contains(row.path);
  };
  Paths paths;
  for_each_top(timeline.rows, [&](const UsageRow& row) {
    if (hidden(row)) return;
    const auto [at, fresh] = paths.try_emplace(row.path);
    if (fresh) {
      at->second.row = row;
    } else {
      add_counters(at->second.row, row);
    }
  });
  for_each_top(timeline.detail, [&](const UsageRow& row) {
    const auto found = paths.find(row.path);
    if (found == paths.end() || hidden(row)) return;
    PathParts& parts = found->second;
    if (row.flags & kFolded) {
      parts.folded_ns += row.time_ns;
    } else {
      parts.intervals.emplace_back(row.begin_ns, row.end_ns);
    }
    if (!row.step.empty()) parts.steps.insert(row.step);
  });
  return paths;
}

/// Most nodes held at one time in the interval; 0: no allocation is known.
std::int64_t nodes_allocated(const Timeline& timeline, std::int64_t begin_ns, std::int64_t end_ns) {
  std::int64_t most = 0;
  for (const auto& allocation : timeline.allocations) {
    const std::int64_t end = allocation.end_ns.value_or(timeline.end_ns);
    if (allocation.begin_ns > end_ns || end < begin_ns) continue;
    const auto listed = static_cast<std::int64_t>(allocation.nodes.size());
    most = std::max(most, allocation.node_count.value_or(listed));
  }
  return most;
}

/// Nodes of these steps that should have told something and did not.
std::int64_t nodes_missing(const Timeline& timeline, const std::set<std::string>& steps) {
  std::set<std::string> told;
  std::int64_t wanted = 0;
  for (const auto& run : timeline.runs) {
    if (!steps.contains(run.step)) continue;
    told.insert(run.node);
    if (!run.of_script()) wanted = std::max(wanted, run.step_nodes.value_or(0));
  }
  return std::max<std::int64_t>(0, wanted - static_cast<std::int64_t>(told.size()));
}

Maybe cpu_of(const NodeUse& node) {
  // Where only some tasks marked the phase, the others worked in it too.
  if (!node.cpu_busy_ns) return node.cpu_time_ns;
  return std::max(*node.cpu_busy_ns, node.cpu_time_ns.value_or(0));
}

bool has_news(const NodeUse& node) {
  return !node.silent && (cpu_of(node) || node.memory_peak_bytes);
}

std::int64_t count_used(const std::vector<NodeUse>& nodes) {
  double cpu_most = 0, memory_most = 0;
  for (const auto& node : nodes) {
    cpu_most = std::max(cpu_most, static_cast<double>(cpu_of(node).value_or(0)));
    memory_most = std::max(memory_most, static_cast<double>(node.memory_peak_bytes.value_or(0)));
  }
  return std::count_if(nodes.begin(), nodes.end(), [&](const NodeUse& node) {
    const auto cpu = static_cast<double>(cpu_of(node).value_or(0));
    const auto memory = static_cast<double>(node.memory_peak_bytes.value_or(0));
    return !has_news(node) || (cpu > 0 && cpu >= cpu_most * kCpuShareLeast) ||
           (memory > 0 && memory >= memory_most * kMemoryShareLeast);
  });
}

/// What the node that held most was given; where its limit is not known, the largest that is.
Maybe memory_limit(const std::vector<NodeUse>& nodes) {
  Maybe peak, at_peak, largest;
  for (const auto& node : nodes) {
    largest = std::max(largest, node.memory_allocated_bytes);
    if (node.memory_peak_bytes && (!peak || *node.memory_peak_bytes > *peak)) {
      peak = node.memory_peak_bytes;
      at_peak = node.memory_allocated_bytes;
    }
  }
  return at_peak ? at_peak : largest;
}

void larger(std::optional<double>& most, const std::optional<double>& value) {
  if (value && (!most || *value > *most)) most = value;
}

/// On one node: the busiest half second of the longest intervals, never below the mean.
std::optional<double> cpus_busy(const std::vector<NodeUse>& nodes, std::vector<Interval> intervals,
                                double duration_s, const Curves& curves) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.second - a.first > b.second - b.first;
  });
  if (intervals.size() > kIntervalsSearched) intervals.resize(kIntervalsSearched);
  std::optional<double> most;
  for (const auto& node : nodes) {
    if (!has_news(node)) continue;
    const auto curve = curves.find(node.node);
    for (const auto& [begin_ns, end_ns] : intervals) {
      if (curve != curves.end()) larger(most, curve->second.busiest(begin_ns, end_ns));
    }
    if (node.cpu_time_ns && duration_s >= static_cast<double>(CpuCurve::kWindowNs) / kSecond) {
      larger(most, static_cast<double>(*node.cpu_time_ns) / kSecond / duration_s);
    }
  }
  return most;
}

std::uint32_t flags_of(const UsageRow& row, std::int64_t missing) {
  std::uint32_t flags = 0;
  const bool silent = std::any_of(row.nodes.begin(), row.nodes.end(), [](const NodeUse& node) {
    return !has_news(node) || node.unknown_s > 0;
  });
  if (silent || missing > 0 || (row.flags & (kPartial | kRecorderLost))) flags |= kObservedPartial;
  if (row.flags & (kUnclosed | kEndLost)) flags |= kObservedUnclosed;
  return flags;
}

/// What the path and the whole job have in common. Duration and CPUs are left to the caller.
Observation observation_of(const UsageRow& row, const Timeline& timeline, std::int64_t missing) {
  Observation seen;
  const auto told = static_cast<std::int64_t>(row.nodes.size());
  seen.path = row.path;
  seen.nodes = std::max<std::int64_t>(1, nodes_allocated(timeline, row.begin_ns, row.end_ns));
  if (timeline.allocations.empty()) seen.nodes = std::max(seen.nodes, told + missing);
  const std::int64_t used = told > 0 ? count_used(row.nodes) + missing : seen.nodes;
  seen.nodes_used = std::clamp<std::int64_t>(used, 1, seen.nodes);
  if (row.cpu_time_ns) seen.cpu_time_s = static_cast<double>(*row.cpu_time_ns) / kSecond;
  seen.memory_peak_bytes = row.memory_peak_bytes;
  seen.memory_limit_bytes = memory_limit(row.nodes);
  seen.flags = flags_of(row, missing);
  if (told == 0) seen.flags |= kObservedPartial;
  return seen;
}

Maybe widest_step(const Timeline& timeline) {
  Maybe most;
  for (const auto& run : timeline.runs) most = std::max(most, run.step_tasks);
  for (const auto& row : timeline.rows) {
    if (row.kind == UsageRow::Kind::kStep && row.tasks > 0) most = std::max(most, Maybe(row.tasks));
  }
  return most;
}

/// Slurm calls a job COMPLETED if its script ended well, whatever became of the steps. The
/// high-water mark holds page cache too, but the kernel drops that before it kills.
bool killed_for_memory(const Run& run) {
  const Maybe limit = run.step_memory_bytes ? run.step_memory_bytes : run.job_memory_bytes;
  if (!run.killed || !limit || !run.memory_high_bytes) return false;
  return static_cast<double>(*run.memory_high_bytes) >=
         kOomShareLeast * static_cast<double>(*limit);
}

bool any_run(const Timeline& timeline, bool (*is)(const Run&)) {
  return std::any_of(timeline.runs.begin(), timeline.runs.end(), is);
}

/// How the job ended, as flags. Without a record only its steps tell.
std::uint32_t end_flags(const Timeline& timeline) {
  const JobFacts& job = timeline.job;
  const std::string state = job.state.value_or("");
  if (state == "OUT_OF_MEMORY") return kObservedOom;
  if (state == "TIMEOUT") return kObservedTimeout;
  // A person, or a later job, may have ended it when its page cache had filled its memory.
  const bool stopped = state == "CANCELLED" || state == "PREEMPTED";
  if (!stopped && any_run(timeline, killed_for_memory)) return kObservedOom;
  if (any_run(timeline, [](const Run& run) { return run.crashed; })) return kObservedFailed;
  const bool well = state.empty() || state == "COMPLETED" || state == "COMPLETING";
  if (well && job.exit_code.value_or(0) == 0) return 0;
  return kObservedFailed;
}

/// A run that was killed for memory while the phase was open, or nullptr.
const Run* killed_in(const Timeline& timeline, const UsageRow& row) {
  for (const auto& run : timeline.runs) {
    const bool in = run.end_ns >= row.begin_ns && run.begin_ns <= row.end_ns &&
                    (run.end_ns <= row.end_ns || (row.flags & kCutOff));
    if (in && killed_for_memory(run)) return &run;
  }
  return nullptr;
}

/// Sets how the job ended, where that concerns the phase (or the job itself).
void set_end(Observation& seen, const Timeline& timeline, const UsageRow& row, bool whole) {
  const std::uint32_t end = end_flags(timeline);
  const Run* killed = end & kObservedOom ? killed_in(timeline, row) : nullptr;
  if (whole || (row.flags & kCutOff) || killed != nullptr) seen.flags |= end;
  seen.flags |= end & kObservedFailed;
  // Samples come each second: what was allocated just before the kill is in the mark alone.
  if (killed != nullptr) {
    seen.memory_peak_bytes = std::max(seen.memory_peak_bytes, killed->memory_high_bytes);
    const Maybe limit =
        killed->step_memory_bytes ? killed->step_memory_bytes : killed->job_memory_bytes;
    if (limit) seen.memory_limit_bytes = limit;
  }
}

Observation observe_job(const Timeline& timeline, const UsageRow& row, const Curves& curves) {
  std::set<std::string> steps;
  for (const auto& run : timeline.runs) steps.insert(run.step);
  Observation seen = observation_of(row, timeline, 0);
  seen.path.clear();
  seen.tasks = widest_step(timeline);
  const std::int64_t open_ns = row.end_ns - row.begin_ns;
  // The sum that Slurm knows; the intervals are those that a look saw.
  const std::int64_t suspended_ns = timeline.job.suspended_s.value_or(0) * kSecond;
  seen.duration_s =
      static_cast<double>(std::max<std::int64_t>(0, open_ns - suspended_ns)) / kSecond;
  seen.cpus_busy = cpus_busy(row.nodes, {{row.begin_ns, row.end_ns}}, seen.duration_s, curves);
  set_end(seen, timeline, row, true);
  return seen;
}

Observation observe_path(const Timeline& timeline, const PathParts& parts, const Curves& curves) {
  Observation seen = observation_of(parts.row, timeline, nodes_missing(timeline, parts.steps));
  if (parts.row.tasks > 0) seen.tasks = parts.row.tasks;
  const auto united = unite(parts.intervals);
  std::int64_t open_ns = parts.folded_ns;
  const auto suspended = suspended_times(timeline);
  for (const auto& interval : united) open_ns += total_length(complement(interval, suspended));
  seen.duration_s = static_cast<double>(open_ns) / kSecond;
  seen.cpus_busy = cpus_busy(parts.row.nodes, united, seen.duration_s, curves);
  set_end(seen, timeline, parts.row, false);
  return seen;
}

std::vector<Observation> observe_paths(const Timeline& timeline, const Curves& curves) {
  const Paths paths = collect_paths(timeline);
  std::vector<const PathParts*> order;
  order.reserve(paths.size());
  for (const auto& [path, parts] : paths) order.push_back(&parts);
  std::stable_sort(order.begin(), order.end(), [](const PathParts* a, const PathParts* b) {
    return a->row.begin_ns < b->row.begin_ns;
  });
  std::vector<Observation> seen;
  seen.reserve(order.size());
  for (const auto* parts : order) seen.push_back(observe_path(timeline, *parts, curves));
  return seen;
}

Curves curves_of(const Timeline& timeline) {
  std::map<std::string, std::vector<const Run*>> runs;
  for (const auto& run : timeline.runs) runs[run.node].push_back(&run);
  Curves curves;
  for (const auto& [node, there] : runs) curves.emplace(node, CpuCurve(there));
  return curves;
}

const Run* run_with_profile(const Timeline& timeline) {
  const Run* found = nullptr;
  for (const auto& run : timeline.runs) {
    if (!run.profile || run.profile->empty()) continue;
    // The job's own option rather than one srun's.
    if (found == nullptr || (run.of_script() && !found->of_script())) found = &run;
  }
  return found;
}

}  // namespace

std::optional<ProfileOfStart> profile_of(const Timeline& timeline) {
  const JobFacts& job = timeline.job;
  const auto audit = job.admin_comment ? parse_audit(*job.admin_comment) : std::nullopt;
  if (audit && !audit->profile.empty()) {
    const Maybe asked = audit->asked.nodes ? audit->asked.nodes : job.requested_nodes;
    const bool theirs = job.uid && !audit->profile.starts_with(std::to_string(*job.uid) + '/');
    const bool unset = audit->asked.any() && !audit->asked.memory_mib;
    if (!theirs) return ProfileOfStart{audit->profile, asked, unset};
  }
  const Run* run = run_with_profile(timeline);
  if (run == nullptr || !job.uid) return std::nullopt;
  const ProfileKey key = profile_key(static_cast<std::uint32_t>(*job.uid), *run->profile, "", "");
  return ProfileOfStart{std::string(key.view()), job.requested_nodes, false};
}

std::optional<ObservedJob> observe(const Timeline& timeline, const std::string& profile,
                                   const Maybe& nodes_asked) {
  const bool began = timeline.begin_ns > 0 && timeline.end_ns > timeline.begin_ns;
  if (timeline.running || !began || timeline.rows.empty()) return std::nullopt;
  const JobFacts& facts = timeline.job;
  ObservedJob job;
  job.profile = profile;
  job.cluster = facts.cluster;
  job.job_id = facts.job_id;
  job.restart_count = facts.restart_count;
  job.submit_s = facts.submit_s.value_or(0);
  job.start_s = facts.start_s.value_or(timeline.begin_ns / kSecond);
  job.end_s = facts.end_s.value_or(timeline.end_ns / kSecond);
  job.name = facts.name.value_or("");
  job.partition = facts.partition.value_or("");
  job.nodes_asked = nodes_asked;
  const Curves curves = curves_of(timeline);
  job.phases.push_back(observe_job(timeline, timeline.rows.front(), curves));
  auto phases = observe_paths(timeline, curves);
  std::move(phases.begin(), phases.end(), std::back_inserter(job.phases));
  return job;
}

}  // namespace sphase
