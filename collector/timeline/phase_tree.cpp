#include "collector/timeline/phase_tree.h"

#include <algorithm>
#include <map>

#include "collector/timeline/intervals.h"
#include "collector/timeline/node_use.h"
#include "collector/timeline/step_phases.h"

namespace sphase {
namespace {

UsageRow job_row(const Timeline& timeline, const NodeUsage& usage) {
  UsageRow row;
  row.kind = UsageRow::Kind::kJob;
  row.name = "job";
  row.begin_ns = timeline.begin_ns;
  row.end_ns = timeline.end_ns;
  row.time_ns = row.duration_ns = row.end_ns - row.begin_ns;
  row.shortest_ns = row.longest_ns = row.time_ns;
  // Some slack: records have whole seconds, and the allocation decides.
  row.nodes = usage.of_job(row.begin_ns, row.end_ns + 2'000'000'000);
  for (auto& node : row.nodes) {
    if (node.unknown_s == 0) node.flags &= ~(kInterpolated | kCrossed | kIoInterpolated);
  }
  if (timeline.running) row.flags |= kOpen;
  total_up(row);
  return row;
}

UsageRow job_phase_row(const PhaseMark& mark, const NodeUsage& usage) {
  UsageRow row = row_of_mark(mark);
  row.kind = UsageRow::Kind::kJobPhase;
  row.nodes = usage.of_job(row.begin_ns, row.end_ns);
  if (mark.folded()) row.nodes.clear();  // its interval holds more than the phase
  total_up(row);
  if (mark.folded()) row.cpu_time_ns = mark.cpu_time_ns;
  row.events.add_part(mark.counts);
  return row;
}

/// What the steps inside `row` counted. Of a step that crosses its edge nothing is known there.
void add_events(UsageRow& row, const std::vector<PhaseTree>& inside) {
  constexpr std::int64_t kSlackNs = 50'000'000;  // a step's recorder begins before its program
  for (const auto& tree : inside) {
    add_events(row, tree.inside);
    if (tree.row.kind != UsageRow::Kind::kStep) continue;
    const bool crosses =
        row.kind == UsageRow::Kind::kJobPhase &&
        (tree.row.begin_ns < row.begin_ns - kSlackNs || tree.row.end_ns > row.end_ns + kSlackNs);
    if (crosses) {
      row.events.add_part({});
    } else {
      row.events.add(tree.row.events);
    }
  }
}

/// Job and job phases hold what their steps counted; innermost first, so that each adds once.
void gather_events(PhaseTree& tree) {
  const auto kind = tree.row.kind;
  if (kind != UsageRow::Kind::kJob && kind != UsageRow::Kind::kJobPhase) return;
  for (auto& inner : tree.inside) gather_events(inner);
  add_events(tree.row, tree.inside);
  flag_events(tree.row);
}

/// Puts each mark inside the one that it was opened in. `marks` by begin, outer ones first.
struct JobPhases {
  std::vector<const PhaseMark*> marks;
  std::vector<int> parent;  // index, -1: top level
};

JobPhases job_phases(const Timeline& timeline) {
  JobPhases phases;
  for (const auto& run : timeline.runs) {
    if (!run.of_script()) continue;
    for (const auto& mark : run.phases) {
      if (mark.shell) phases.marks.push_back(&mark);
    }
  }
  for (const auto& mark : timeline.leader_phases) phases.marks.push_back(&mark);
  std::stable_sort(
      phases.marks.begin(), phases.marks.end(), [](const PhaseMark* a, const PhaseMark* b) {
        return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->depth < b->depth;
      });
  std::map<std::int64_t, std::vector<std::size_t>> at_depth;
  for (std::size_t i = 0; i < phases.marks.size(); ++i) {
    int parent = -1;
    const auto& outer = at_depth[phases.marks[i]->depth - 1];
    for (std::size_t j = outer.size(); j-- > 0 && parent < 0;) {
      if (is_inside(*phases.marks[i], *phases.marks[outer[j]])) parent = static_cast<int>(outer[j]);
    }
    phases.parent.push_back(parent);
    at_depth[phases.marks[i]->depth].push_back(i);
  }
  return phases;
}

/// Index of the innermost phase that holds more than half of the step; -1: none.
int home_of(const UsageRow& step, const JobPhases& phases) {
  int home = -1;
  for (std::size_t i = 0; i < phases.marks.size(); ++i) {
    const PhaseMark& mark = *phases.marks[i];
    const std::int64_t shared =
        std::min(step.end_ns, mark.end_ns) - std::max(step.begin_ns, mark.begin_ns);
    // Outer ones come first.
    if (2 * shared > step.end_ns - step.begin_ns) home = static_cast<int>(i);
  }
  return home;
}

std::vector<PhaseTree> step_trees(const Timeline& timeline, const NodeUsage& usage) {
  std::map<std::string, std::vector<const Run*>> by_step;
  for (const auto& run : timeline.runs) by_step[run.step].push_back(&run);
  std::vector<PhaseTree> trees;
  for (const auto& [step, runs] : by_step) {
    PhaseTree tree = build_step_tree(runs, usage);
    // The script's step holds the CPUs that the other steps use.
    if (runs.front()->of_script() && by_step.size() > 1) hide_script_share(tree.row);
    trees.push_back(std::move(tree));
  }
  std::sort(trees.begin(), trees.end(), begins_earlier);
  return trees;
}

}  // namespace

PhaseTree build_phase_tree(const Timeline& timeline) {
  const NodeUsage usage(timeline);
  const JobPhases phases = job_phases(timeline);
  PhaseTree job{job_row(timeline, usage), {}};
  std::vector<PhaseTree> trees;
  for (const PhaseMark* mark : phases.marks) trees.push_back({job_phase_row(*mark, usage), {}});
  for (auto& step : step_trees(timeline, usage)) {
    const bool script = step.row.step == "batch" || step.row.step == "interactive";
    const int home = script ? -1 : home_of(step.row, phases);
    (home < 0 ? job : trees[static_cast<std::size_t>(home)]).inside.push_back(std::move(step));
  }
  auto top = nest_trees(std::move(trees), phases.parent);
  const auto use = [&](Interval rest) { return usage.of_job(rest.first, rest.second); };
  if (auto outside = outside_row(job.row, top, use)) top.push_back({std::move(*outside), {}});
  std::move(top.begin(), top.end(), std::back_inserter(job.inside));
  std::stable_sort(job.inside.begin(), job.inside.end(), begins_earlier);
  gather_events(job);
  return job;
}

namespace {

void flatten_into(const PhaseTree& tree, int level, std::vector<UsageRow>& rows) {
  rows.push_back(tree.row);
  rows.back().level = level;
  for (const auto& inner : tree.inside) flatten_into(inner, level + 1, rows);
}

}  // namespace

std::vector<UsageRow> flatten(const PhaseTree& tree) {
  std::vector<UsageRow> rows;
  flatten_into(tree, 0, rows);
  return rows;
}

}  // namespace sphase
