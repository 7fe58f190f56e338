#include "collector/timeline/node_use.h"

#include <algorithm>

#include "collector/timeline/node_names.h"

namespace sphase {
namespace {

constexpr double kNsPerSecond = 1e9;
/// More cuts than this on one node, and phases inside steps are no longer cut at.
constexpr std::size_t kMostCuts = 4096;

std::int64_t overlap_ns(std::int64_t a_begin, std::int64_t a_end, std::int64_t b_begin,
                        std::int64_t b_end) {
  return std::max<std::int64_t>(0, std::min(a_end, b_end) - std::max(a_begin, b_begin));
}

bool touches(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) {
  return run.begin_ns < end_ns && run.end_ns > begin_ns;
}

}  // namespace

Maybe stacked_peak(const std::vector<MemoryPiece>& pieces) {
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
  const auto first = std::lower_bound(
      run.phases.begin(), run.phases.end(), begin_ns,
      [](const PhaseMark& mark, std::int64_t time_ns) { return mark.begin_ns < time_ns; });
  for (auto mark = first; mark != run.phases.end() && mark->begin_ns <= end_ns; ++mark) {
    if (mark->memory_peak_bytes && mark->end_ns <= end_ns) {
      peak = std::max(peak.value_or(0), *mark->memory_peak_bytes);
    }
  }
  return peak;
}

std::vector<std::int64_t> phase_cuts(const Run& run) {
  std::map<std::pair<std::string_view, std::int64_t>, std::pair<std::int64_t, std::int64_t>> seen;
  for (const auto& mark : run.phases) {
    if (mark.depth > 0 || mark.folded() || (mark.shell && run.of_script())) continue;
    const auto [at, fresh] = seen.try_emplace({mark.path, mark.number}, mark.begin_ns, mark.end_ns);
    if (fresh) continue;
    at->second.first = std::min(at->second.first, mark.begin_ns);
    at->second.second = std::max(at->second.second, mark.end_ns);
  }
  std::vector<std::int64_t> cuts;
  for (const auto& [key, interval] : seen) {
    cuts.push_back(interval.first);
    cuts.push_back(interval.second);
  }
  return cuts;
}

void sort_cuts(std::vector<std::int64_t>& cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
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

NodeUsage::NodeUsage(const Timeline& timeline)
    : timeline_(timeline), spans_(node_spans(timeline)), suspended_(suspended_times(timeline)) {
  for (const auto& span : spans_) spans_of_[span.node].push_back(&span);
  for (const auto& run : timeline_.runs) {
    runs_of_[run.node].push_back(&run);
    if (!run.of_script()) continue;
    for (const auto& mark : run.phases) {
      if (!mark.shell || mark.folded()) continue;
      job_cuts_.push_back(mark.begin_ns);
      job_cuts_.push_back(mark.end_ns);
    }
  }
  for (const auto& mark : timeline_.leader_phases) {
    job_cuts_.push_back(mark.begin_ns);
    job_cuts_.push_back(mark.end_ns);
  }
  for (auto& [node, runs] : runs_of_) {
    std::sort(runs.begin(), runs.end(),
              [](const Run* a, const Run* b) { return a->begin_ns < b->begin_ns; });
  }
  find_incomplete();
  find_blind();
  for (const auto& [node, spans] : spans_of_) pieces_of_[node] = cut_node(node);
}

/// Edges of everything on the node: nothing of what is told apart in the report lies across one.
std::vector<std::int64_t> NodeUsage::cuts_of(const std::string& node) const {
  std::vector<std::int64_t> cuts = job_cuts_, inner;
  for (const NodeSpan* span : spans_of_.at(node)) {
    cuts.push_back(span->begin_ns);
    cuts.push_back(span->end_ns);
  }
  if (const auto times = blind_.find(node); times != blind_.end()) {
    for (const auto& [begin_ns, end_ns] : times->second) {
      cuts.push_back(begin_ns);
      cuts.push_back(end_ns);
    }
  }
  if (const auto runs = runs_of_.find(node); runs != runs_of_.end()) {
    for (const Run* run : runs->second) {
      cuts.push_back(run->begin_ns);
      cuts.push_back(run->end_ns);
      const auto more = phase_cuts(*run);
      inner.insert(inner.end(), more.begin(), more.end());
    }
  }
  if (cuts.size() + inner.size() <= kMostCuts) cuts.insert(cuts.end(), inner.begin(), inner.end());
  sort_cuts(cuts);
  return cuts;
}

std::vector<NodeUsage::Piece> NodeUsage::cut_node(const std::string& node) const {
  static const std::vector<const Run*> kNone;
  const auto found = runs_of_.find(node);
  const auto& runs = found == runs_of_.end() ? kNone : found->second;
  const auto cuts = cuts_of(node);
  std::vector<Piece> pieces;
  std::vector<const Run*> active;
  auto next = runs.begin();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::erase_if(active, [&](const Run* run) { return run->end_ns <= cuts[i]; });
    for (; next != runs.end() && (*next)->begin_ns <= cuts[i]; ++next) active.push_back(*next);
    NodeUse use = use_node(node, active, cuts[i], cuts[i + 1], false);
    if (use.time_s <= 0) continue;
    std::optional<double> wasted;
    if (!blind(node, cuts[i], cuts[i + 1])) wasted = wasted_node_s(use);
    pieces.push_back({cuts[i], cuts[i + 1], wasted});
  }
  return pieces;
}

/// Waste of the pieces in the interval; what is not known of them is unknown time.
void NodeUsage::add_waste(NodeUse& use, std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto& pieces = pieces_of_.at(use.node);
  auto piece = std::lower_bound(
      pieces.begin(), pieces.end(), begin_ns,
      [](const Piece& one, std::int64_t time_ns) { return one.end_ns <= time_ns; });
  use.unknown_s = 0;
  for (; piece != pieces.end() && piece->begin_ns < end_ns; ++piece) {
    const std::int64_t time = overlap_ns(piece->begin_ns, piece->end_ns, begin_ns, end_ns);
    const double part =
        static_cast<double>(time) / static_cast<double>(piece->end_ns - piece->begin_ns);
    if (piece->wasted) {
      use.wasted_node_s = use.wasted_node_s.value_or(0) + *piece->wasted * part;
    } else {
      use.unknown_s += static_cast<double>(time) / kNsPerSecond;
    }
  }
  if (use.unknown_s > 0 && !use.silent) use.flags |= kPartial;
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

/// Times of a node after a recorder was last heard of, until its step ended elsewhere, or the job.
void NodeUsage::find_blind() {
  std::map<std::string, std::int64_t> step_end;
  for (const auto& run : timeline_.runs) {
    if (run.ended) step_end[run.step] = std::max(step_end[run.step], run.end_ns);
  }
  for (const auto& run : timeline_.runs) {
    if (run.ended) continue;
    const auto over = step_end.find(run.step);
    const std::int64_t until = over == step_end.end() ? timeline_.end_ns : over->second;
    if (until > run.end_ns) blind_[run.node].emplace_back(run.end_ns, until);
  }
}

bool NodeUsage::blind(const std::string& node, std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto found = blind_.find(node);
  return found != blind_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const Interval& time) {
           return time.first < end_ns && time.second > begin_ns;
         });
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

/// Everything that ran on the node in the interval; none: it was idle, or is silent.
void NodeUsage::add_runs(NodeUse& use, const std::vector<const Run*>& runs, std::int64_t begin_ns,
                         std::int64_t end_ns, bool with_io) const {
  std::vector<MemoryPiece> memory;
  bool any = false;
  for (const Run* run : runs) {
    if (!touches(*run, begin_ns, end_ns)) continue;
    any = true;
    const Reading cpu = run->samples.increase(&Sample::cpu_time_ns, begin_ns, end_ns);
    add(use.cpu_time_ns, cpu.value, use.flags);
    if (!cpu.exact) use.flags |= kInterpolated | kCrossed;
    if (run->lost && end_ns > run->end_ns) use.flags |= kRecorderLost;
    if (with_io) read_io(use, *run, begin_ns, end_ns);
    const std::int64_t from = std::max(begin_ns, run->begin_ns);
    const std::int64_t to = std::min(end_ns, run->end_ns);
    if (const Maybe peak = run_memory_peak(*run, from, to)) memory.push_back({from, to, *peak});
  }
  use.memory_peak_bytes = stacked_peak(memory);
  if (any) return;
  use.silent = blind(use.node, begin_ns, end_ns) || silent(use.node, begin_ns, end_ns);
  use.idle = !use.silent;
  if (use.idle) use.cpu_time_ns = use.memory_peak_bytes = 0;  // known: nothing ran there
}

NodeUse NodeUsage::use_node(const std::string& node, const std::vector<const Run*>& runs,
                            std::int64_t begin_ns, std::int64_t end_ns, bool with_io) const {
  NodeUse use;
  use.node = node;
  bool cpus_known = true;
  std::int64_t last_ns = begin_ns;
  for (const NodeSpan* span : spans_of_.at(node)) {
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
  if (use.time_s > 0) add_runs(use, runs, begin_ns, last_ns, with_io);
  return use;
}

std::vector<NodeUse> NodeUsage::of_job(std::int64_t begin_ns, std::int64_t end_ns) const {
  static const std::vector<const Run*> kNone;
  std::vector<NodeUse> uses;
  for (const auto& [node, spans] : spans_of_) {
    const auto runs = runs_of_.find(node);
    NodeUse use =
        use_node(node, runs == runs_of_.end() ? kNone : runs->second, begin_ns, end_ns, true);
    if (use.time_s <= 0) continue;
    add_waste(use, begin_ns, end_ns);
    uses.push_back(std::move(use));
  }
  std::sort(uses.begin(), uses.end(),
            [](const NodeUse& a, const NodeUse& b) { return node_less(a.node, b.node); });
  return uses;
}

/// Time in which the job was not suspended.
std::int64_t NodeUsage::running_ns(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (suspended_.empty()) return end_ns - begin_ns;
  return total_length(complement({begin_ns, end_ns}, suspended_));
}

NodeUse NodeUsage::of_run(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) const {
  NodeUse use;
  use.node = run.node;
  const std::int64_t time_ns = running_ns(begin_ns, end_ns);
  use.time_s = static_cast<double>(time_ns) / kNsPerSecond;
  use.cpus = run.step_cpus;
  if (run.step_cpus) use.cpu_allocated_ns = *run.step_cpus * time_ns;
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
  if (!run.ended && end_ns > run.end_ns) {
    use.flags |= run.lost ? kPartial | kRecorderLost : kPartial;
    const double unknown_s = static_cast<double>(end_ns - run.end_ns) / kNsPerSecond;
    use.unknown_s = std::min(use.time_s, unknown_s);
  }
  read_io(use, run, begin_ns, end_ns);
  return use;
}

std::optional<double> NodeUsage::waste_of_run(const Run& run, std::int64_t begin_ns,
                                              std::int64_t end_ns) const {
  std::vector<std::int64_t> cuts = phase_cuts(run);
  if (cuts.size() > kMostCuts) cuts.clear();
  std::erase_if(cuts, [&](std::int64_t cut) { return cut <= begin_ns || cut >= end_ns; });
  cuts.push_back(begin_ns);
  cuts.push_back(end_ns);
  sort_cuts(cuts);
  std::optional<double> wasted;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    NodeUse use = of_run(run, cuts[i], cuts[i + 1]);
    use.memory_peak_bytes = run_memory_peak(run, cuts[i], cuts[i + 1]);
    if (const auto part = wasted_node_s(use)) wasted = wasted.value_or(0) + *part;
  }
  return wasted;
}

}  // namespace sphase
