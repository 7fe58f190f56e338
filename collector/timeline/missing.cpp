#include "collector/timeline/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "collector/timeline/node_clocks.h"
#include "collector/timeline/node_names.h"
#include "collector/timeline/node_spans.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

using Sentences = std::vector<std::string>;

std::string step_name(const std::string& step) {
  return step == "batch" || step == "interactive" ? "the " + step + " step" : "step " + step;
}

/// Sentences that are the same but for the node become one.
class ByText {
 public:
  void add(const std::string& text, const std::string& node) {
    if (nodes_[text].empty()) order_.push_back(text);
    nodes_[text].push_back(node);
  }
  /// The first `{}` of each text becomes the nodes; each has one.
  void tell(Sentences& out) const {
    for (const auto& text : order_) {
      const auto at = text.find("{}");
      const std::string nodes = compress_nodes(nodes_.at(text));
      std::string sentence = text;
      out.push_back(sentence.replace(at, 2, nodes));
    }
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> nodes_;
};

void tell_notices(const Timeline& timeline, Sentences& out) {
  ByText sentences;
  for (const auto& notice : timeline.notices) {
    if (notice.code == notice::kNotActive) {
      sentences.add(
          "requested but not active on {}, " + step_name(notice.step) + ", because: " + notice.text,
          notice.node);
    } else {
      sentences.add("{}, " + step_name(notice.step) + ": " + notice.text, notice.node);
    }
  }
  sentences.tell(out);
}

std::set<std::string> noticed_nodes(const Timeline& timeline) {
  std::set<std::string> nodes;
  for (const auto& notice : timeline.notices) {
    if (notice.code == notice::kNotActive) nodes.insert(notice.node);
  }
  return nodes;
}

/// Nodes allocated at some time of [begin, end].
std::set<std::string> allocated_nodes(const Timeline& timeline, std::int64_t begin_ns,
                                      std::int64_t end_ns) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;  // records cut the end to a whole second
  std::set<std::string> nodes;
  for (const auto& allocation : timeline.allocations) {
    const bool ended_before = allocation.end_ns && *allocation.end_ns + kSecondNs <= begin_ns;
    if (allocation.begin_ns >= end_ns || ended_before) continue;
    for (const auto& node : allocation.nodes) nodes.insert(node.node);
  }
  return nodes;
}

/// Nodes of a step that told nothing, without a notice that says why.
void tell_silent_nodes(const Timeline& timeline, Sentences& out) {
  std::map<std::string, std::vector<const Run*>> steps;
  for (const auto& run : timeline.runs) {
    if (!run.of_script()) steps[run.step].push_back(&run);
  }
  const auto noticed = noticed_nodes(timeline);
  ByText sentences;
  for (const auto& [step, runs] : steps) {
    const auto wanted = static_cast<std::size_t>(runs.front()->step_nodes.value_or(0));
    if (runs.size() >= wanted) continue;
    std::set<std::string> rest =
        allocated_nodes(timeline, runs.front()->begin_ns,
                        std::max(runs.front()->end_ns, runs.front()->begin_ns + 1));
    for (const Run* run : runs) rest.erase(run->node);
    const std::size_t missing = wanted - runs.size();
    if (rest.size() != missing) {  // which ones cannot be told
      std::size_t explained = 0;
      for (const auto& node : noticed) explained += rest.empty() || rest.contains(node) ? 1 : 0;
      if (explained >= missing) continue;
      out.push_back(
          fmt::format("no telemetry from {} of the {} nodes of {}, and no note why: is "
                      "the plugin installed there, were their node.db merged?",
                      missing - explained, wanted, step_name(step)));
      continue;
    }
    for (const auto& node : rest) {
      if (noticed.contains(node)) continue;
      sentences.add("no telemetry from {} and no note why, " + step_name(step) +
                        ": is the plugin installed there, was its node.db merged?",
                    node);
    }
  }
  sentences.tell(out);
}

void tell_sources(const Timeline& timeline, Sentences& out) {
  ByText sentences;
  auto tell = [&](const Run& run, const char* what, const MaybeText& source,
                  const MaybeText& reason) {
    if (source) return;
    sentences.add(fmt::format("no {} on {{}}: {}", what, reason.value_or("no reason was given")),
                  run.node);
  };
  for (const auto& run : timeline.runs) {
    tell(run, "CPU time", run.cpu_source, run.cpu_reason);
    tell(run, "memory", run.memory_source, run.memory_reason);
    tell(run, "I/O", run.io_source, run.io_reason);
  }
  sentences.tell(out);
}

void tell_losses(const Timeline& timeline, Sentences& out) {
  ByText lost;
  std::int64_t markers = 0, dropped = 0, invalid = 0, samples = 0;
  std::vector<std::string> dropping;
  for (const auto& run : timeline.runs) {
    if (run.lost) lost.add("the recorder of " + step_name(run.step) + " was lost on {}", run.node);
    if (run.segments_unreadable > 0) {
      lost.add("some stored rows of " + step_name(run.step) + " are damaged and missing: {}",
               run.node);
    }
    markers += run.markers;
    dropped += run.markers_dropped;
    invalid += run.markers_invalid;
    samples += run.samples_dropped;
    if (run.markers_dropped + run.samples_dropped + run.markers_invalid > 0) {
      dropping.push_back(run.node);
    }
  }
  lost.tell(out);
  if (dropped + invalid + samples == 0) return;
  out.push_back(
      fmt::format("lost on {}: {} of {} markers because the ring was full, {} markers not "
                  "understood, {} samples not stored",
                  compress_nodes(dropping), dropped, markers + dropped, invalid, samples));
}

/// Corrected, and so not missing; but whoever compares with the node's own logs wants to know.
void tell_clocks(const Timeline& timeline, Sentences& out) {
  for (const auto& clock : timeline.clocks) {
    if (shift_of(clock) == 0) continue;
    const double offset_s = static_cast<double>(clock.offset_ns) / 1e9;
    if (std::abs(offset_s) < 0.1) continue;  // no person sees that
    out.push_back(
        fmt::format("the clock of {} was {:.3f} s {} that of the collector: its times are "
                    "corrected, to within {:.3g} ms",
                    clock.node, std::abs(offset_s), offset_s > 0 ? "before" : "behind",
                    static_cast<double>(clock.band_ns) / 1e6));
  }
}

void tell_phases(const Timeline& timeline, Sentences& out) {
  constexpr std::size_t kNamed = 4;
  std::set<std::string> unclosed;
  std::int64_t late = 0, worst_ns = 0;
  for (const auto& run : timeline.runs) {
    for (const auto& mark : run.phases) {
      if (mark.flags & kUnclosed) unclosed.insert(mark.path);
      if ((mark.flags & kLate) == 0) continue;
      ++late;
      worst_ns = std::max(worst_ns, mark.edge_lag_ns.value_or(0));
    }
  }
  if (!unclosed.empty()) {
    std::string names;
    std::size_t named = 0;
    for (const auto& path : unclosed) {
      if (named++ == kNamed) break;
      names += (names.empty() ? "" : ", ") + path;
    }
    if (unclosed.size() > kNamed) names += fmt::format(" and {} more", unclosed.size() - kNamed);
    out.push_back("never ended by the program, so closed at the end of the task: " + names);
  }
  if (late > 0) {
    out.push_back(
        fmt::format("{} phase edges were read late, the worst by {:.1f} ms: CPU time near "
                    "them is off by as much",
                    late, static_cast<double>(worst_ns) / 1e6));
  }
}

/// Time that Slurm says it was suspended and no look saw: it still counts as allocated.
void tell_suspended(const Timeline& timeline, Sentences& out) {
  constexpr std::int64_t kSecond = 1'000'000'000, kRoundingS = 2;
  const std::int64_t seen_s = total_length(suspended_times(timeline)) / kSecond;
  const std::int64_t unseen_s = timeline.job.suspended_s.value_or(0) - seen_s;
  if (unseen_s <= kRoundingS) return;
  out.push_back(
      fmt::format("it was suspended for {} s at times that nobody looked: they count as "
                  "allocated and not used",
                  unseen_s));
}

void tell_records(const Timeline& timeline, Sentences& out) {
  if (!timeline.job.source) {
    out.push_back(
        "slurmctld and slurmdbd were not asked, or did not know the job: what was requested, its "
        "state, and nodes on which nothing ran are not known");
  }
  for (const auto& allocation : timeline.allocations) {
    if (allocation.deduced && timeline.job.source) {
      out.push_back(
          "the records do not name the nodes of an allocation: only nodes that sent "
          "telemetry are counted");
      break;
    }
  }
  const bool waits = timeline.job.source && !timeline.job.start_s;
  if (timeline.runs.empty() && !waits && noticed_nodes(timeline).empty()) {
    out.push_back(
        "nothing was recorded: was the job run with --phase-telemetry, were the node.db "
        "of its nodes merged?");
  }
}

}  // namespace

std::vector<std::string> find_missing(const Timeline& timeline) {
  Sentences out;
  tell_records(timeline, out);
  tell_suspended(timeline, out);
  tell_notices(timeline, out);
  tell_silent_nodes(timeline, out);
  tell_losses(timeline, out);
  tell_clocks(timeline, out);
  tell_phases(timeline, out);
  tell_sources(timeline, out);
  return out;
}

}  // namespace sphase
