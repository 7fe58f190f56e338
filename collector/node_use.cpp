#include "collector/node_use.h"

#include <algorithm>

#include "collector/node_names.h"

namespace sphase {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr std::int64_t kRecordSlackNs = 1'000'000'000;

std::int64_t overlap_ns(std::int64_t a_begin, std::int64_t a_end, std::int64_t b_begin,
                        std::int64_t b_end) {
  return std::max<std::int64_t>(0, std::min(a_end, b_end) - std::max(a_begin, b_begin));
}

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

}  // namespace

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
  return spans;
}

Maybe stacked_peak(std::vector<MemoryPiece> pieces) {
  if (pieces.empty()) return std::nullopt;
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, bytes more or less
  for (const auto& piece : pieces) {
    changes.emplace_back(piece.begin_ns, piece.peak_bytes);
    changes.emplace_back(std::max(piece.end_ns, piece.begin_ns + 1), -piece.peak_bytes);
  }
  std::sort(changes.begin(), changes.end());  // at one time, those that end come first
  std::int64_t now = 0, most = 0;
  for (const auto& [time_ns, bytes] : changes) {
    now += bytes;
    most = std::max(most, now);
  }
  return most;
}

Maybe run_memory_peak(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) {
  Maybe peak = run.samples.memory_peak(begin_ns, end_ns);
  for (const auto& phase : run.phases) {
    if (phase.memory_peak_bytes && phase.begin_ns >= begin_ns && phase.end_ns <= end_ns) {
      peak = std::max(peak.value_or(0), *phase.memory_peak_bytes);
    }
  }
  return peak;
}

void read_io(NodeUse& use, const Run& run, std::int64_t begin_ns, std::int64_t end_ns) {
  IoCounters moved;
  const auto read = [&](Maybe IoCounters::*counter, SampleSeries::Counter sampled) {
    const Reading increase = run.samples.increase(sampled, begin_ns, end_ns);
    moved.*counter = increase.value;
    use.io_at_end.*counter = run.samples.at(sampled, end_ns).value;
    if (!increase.exact) use.flags |= kIoInterpolated;
  };
  read(&IoCounters::read_bytes, &Sample::io_read_bytes);
  read(&IoCounters::write_bytes, &Sample::io_write_bytes);
  read(&IoCounters::read_call_bytes, &Sample::io_read_call_bytes);
  read(&IoCounters::write_call_bytes, &Sample::io_write_call_bytes);
  add(use.io, moved);
  use.io_run_id = use.io_run_id == 0 ? run.run_id : -1;
  use.io_begin_ns = begin_ns;
  use.io_end_ns = end_ns;
}

NodeUsage::NodeUsage(const Timeline& timeline) : timeline_(timeline), spans_(node_spans(timeline)) {
  for (const auto& span : spans_) spans_of_[span.node].push_back(&span);
  for (const auto& run : timeline_.runs) runs_of_[run.node].push_back(&run);
  find_incomplete();
}

void NodeUsage::find_incomplete() {
  std::map<std::string, std::vector<const Run*>> steps;
  for (const auto& run : timeline_.runs) {
    if (!run.of_script()) steps[run.step].push_back(&run);
  }
  for (const auto& [step, runs] : steps) {
    const auto wanted = static_cast<std::size_t>(runs.front()->step_nodes.value_or(0));
    if (runs.size() >= wanted) continue;
    Incomplete entry{runs.front()->begin_ns, runs.front()->end_ns, {}};
    for (const Run* run : runs) {
      entry.begin_ns = std::min(entry.begin_ns, run->begin_ns);
      entry.end_ns = std::max(entry.end_ns, run->end_ns);
      entry.known.push_back(run->node);
    }
    std::sort(entry.known.begin(), entry.known.end());
    incomplete_.push_back(std::move(entry));
  }
}

bool NodeUsage::silent(const std::string& node, std::int64_t begin_ns, std::int64_t end_ns) const {
  if (timeline_.runs.empty()) return true;
  for (const auto& notice : timeline_.notices) {
    if (notice.code == notice::kNotActive && notice.node == node) return true;
  }
  return std::any_of(incomplete_.begin(), incomplete_.end(), [&](const Incomplete& step) {
    return step.begin_ns < end_ns && step.end_ns > begin_ns &&
           !std::binary_search(step.known.begin(), step.known.end(), node);
  });
}

void NodeUsage::add_run(NodeUse& use, const Run& run, std::int64_t begin_ns,
                        std::int64_t end_ns) const {
  const Reading cpu = run.samples.increase(&Sample::cpu_time_ns, begin_ns, end_ns);
  add(use.cpu_time_ns, cpu.value, use.flags);
  if (!cpu.exact) use.flags |= kInterpolated | kCrossed;
  if (run.lost && end_ns > run.end_ns) use.flags |= kRecorderLost;
  read_io(use, run, begin_ns, end_ns);
}

/// Everything that ran on the node in the interval; none: it was idle, or is silent.
void NodeUsage::add_runs(NodeUse& use, std::int64_t begin_ns, std::int64_t end_ns) const {
  std::vector<MemoryPiece> pieces;
  bool any = false, all_told = true;
  std::int64_t heard_ns = begin_ns;
  if (const auto runs = runs_of_.find(use.node); runs != runs_of_.end()) {
    for (const Run* run : runs->second) {
      if (!touches(*run, begin_ns, end_ns)) continue;
      any = true;
      all_told = all_told && (run->ended || run->end_ns >= end_ns);
      heard_ns = std::max(heard_ns, run->end_ns);
      add_run(use, *run, begin_ns, end_ns);
      const std::int64_t from = std::max(begin_ns, run->begin_ns);
      const std::int64_t to = std::min(end_ns, run->end_ns);
      if (const Maybe peak = run_memory_peak(*run, from, to)) pieces.push_back({from, to, *peak});
    }
  }
  use.memory_peak_bytes = stacked_peak(std::move(pieces));
  if (!all_told && heard_ns < end_ns) {
    use.flags |= kPartial;
    use.unknown_s = std::min(use.time_s, static_cast<double>(end_ns - heard_ns) / kNsPerSecond);
  }
  if (any) return;
  use.silent = silent(use.node, begin_ns, end_ns);
  use.idle = !use.silent;
  if (use.idle) use.cpu_time_ns = use.memory_peak_bytes = 0;  // known: nothing ran there
}

NodeUse NodeUsage::use_node(const std::string& node, const std::vector<const NodeSpan*>& spans,
                            std::int64_t begin_ns, std::int64_t end_ns) const {
  NodeUse use;
  use.node = node;
  bool cpus_known = true;
  std::int64_t last_ns = begin_ns;
  for (const NodeSpan* span : spans) {
    const std::int64_t time = overlap_ns(span->begin_ns, span->end_ns, begin_ns, end_ns);
    if (time == 0) continue;
    use.time_s += static_cast<double>(time) / kNsPerSecond;
    last_ns = std::max(last_ns, std::min(span->end_ns, end_ns));
    use.cpus = span->cpus;
    cpus_known = cpus_known && span->cpus;
    if (span->cpus) use.cpu_allocated_ns = use.cpu_allocated_ns.value_or(0) + *span->cpus * time;
    if (span->memory_bytes) {
      use.memory_allocated_bytes =
          std::max(use.memory_allocated_bytes.value_or(0), *span->memory_bytes);
    }
  }
  if (!cpus_known) use.cpu_allocated_ns.reset();
  add_runs(use, begin_ns, last_ns);
  return use;
}

std::vector<NodeUse> NodeUsage::of_job(std::int64_t begin_ns, std::int64_t end_ns) const {
  std::vector<NodeUse> uses;
  for (const auto& [node, spans] : spans_of_) {
    NodeUse use = use_node(node, spans, begin_ns, end_ns);
    if (use.time_s > 0) uses.push_back(std::move(use));
  }
  std::sort(uses.begin(), uses.end(),
            [](const NodeUse& a, const NodeUse& b) { return node_less(a.node, b.node); });
  return uses;
}

NodeUse NodeUsage::of_run(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) const {
  NodeUse use;
  use.node = run.node;
  use.time_s = static_cast<double>(end_ns - begin_ns) / kNsPerSecond;
  use.cpus = run.step_cpus;
  if (run.step_cpus) use.cpu_allocated_ns = *run.step_cpus * (end_ns - begin_ns);
  Maybe job_cpus = run.job_cpus;
  use.memory_allocated_bytes = run.step_memory_bytes ? run.step_memory_bytes : run.job_memory_bytes;
  const auto spans = spans_of_.find(run.node);
  if (spans != spans_of_.end()) {
    for (const NodeSpan* span : spans->second) {
      if (overlap_ns(span->begin_ns, span->end_ns, begin_ns, end_ns) == 0) continue;
      if (!use.memory_allocated_bytes) use.memory_allocated_bytes = span->memory_bytes;
      if (!job_cpus) job_cpus = span->cpus;
    }
  }
  if (run.step_cpus && job_cpus && *job_cpus > 0) {
    use.cpu_share = std::min(1.0, static_cast<double>(*run.step_cpus) / *job_cpus);
  }
  const Reading cpu = run.samples.increase(&Sample::cpu_time_ns, begin_ns, end_ns);
  use.cpu_time_ns = cpu.value;
  if (!cpu.exact) use.flags |= kInterpolated;
  use.memory_peak_bytes = run.samples.memory_peak(begin_ns, end_ns);
  if (run.lost) use.flags |= kRecorderLost;
  read_io(use, run, begin_ns, end_ns);
  return use;
}

}  // namespace sphase
