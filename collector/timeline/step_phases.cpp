#include "collector/timeline/step_phases.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace sphase {
namespace {

struct Marked {
  const Run* run;
  const PhaseMark* mark;
};
using Instance = std::vector<Marked>;  // by run

/// Folded rows of a path are one instance: tasks fold at different numbers.
constexpr std::int64_t kFoldedNumber = -1;

/// Phases are the same if scope, path and number are.
std::vector<Instance> instances_of(const std::vector<const Run*>& runs) {
  std::map<std::tuple<bool, std::string_view, std::int64_t>, Instance> found;
  for (const Run* run : runs) {
    for (const auto& mark : run->phases) {
      if (mark.shell && run->of_script()) continue;  // a job phase
      const std::int64_t number = mark.folded() ? kFoldedNumber : mark.number;
      found[{mark.shell, mark.path, number}].push_back({run, &mark});
    }
  }
  std::vector<Instance> instances;
  instances.reserve(found.size());
  for (auto& [key, instance] : found) instances.push_back(std::move(instance));
  const auto first = [](const Instance& instance) {
    std::int64_t begin = instance.front().mark->begin_ns;
    for (const auto& marked : instance) begin = std::min(begin, marked.mark->begin_ns);
    return std::pair(begin, instance.front().mark->depth);
  };
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::size_t>> order;
  for (std::size_t i = 0; i < instances.size(); ++i) order.emplace_back(first(instances[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Instance> sorted;
  sorted.reserve(instances.size());
  for (const auto& [key, i] : order) sorted.push_back(std::move(instances[i]));
  return sorted;
}

struct Spread {
  double most = 0, sum = 0;
  int count = 0;
  bool complete = true;

  void see(const Maybe& value) {
    if (!value) {
      complete = false;
      return;
    }
    const auto number = static_cast<double>(*value);
    most = std::max(most, number);
    sum += number;
    ++count;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  std::optional<double> imbalance() const {
    if (!complete || count < 2 || sum <= 0) return std::nullopt;
    return most / mean();
  }
};

/// What one task did in an instance; several rows where it was folded.
struct TaskPart {
  Maybe cpu_time_ns;
  std::int64_t time_ns = 0, count = 0;
  std::uint32_t unknown = 0;
};
using TaskParts = std::map<std::pair<const Run*, int>, TaskPart>;

TaskParts parts_of(const Instance& instance) {
  TaskParts parts;
  for (const auto& [run, mark] : instance) {
    TaskPart& part = parts[{run, mark->task}];
    add(part.cpu_time_ns, mark->cpu_time_ns, part.unknown);
    part.time_ns += mark->duration_ns();
    part.count += mark->folded() ? mark->count : 1;
  }
  return parts;
}

void measure_imbalance(UsageRow& row, const TaskParts& parts) {
  Spread cpu, wall;
  for (const auto& [task, part] : parts) {
    cpu.see(part.unknown == 0 ? part.cpu_time_ns : std::nullopt);
    wall.see(part.time_ns);
  }
  row.imbalance_cpu = cpu.imbalance();
  row.imbalance_wall = wall.imbalance();
  row.cpu_max_ns = cpu.most;
  row.cpu_mean_ns = cpu.mean();
  row.wall_max_ns = wall.most;
  row.wall_mean_ns = wall.mean();
}

void forget_io(NodeUse& use) {
  use.io = use.io_at_end = {};
  use.io_run_id = 0;
}

/// What the tasks of one node said about the phase. `use` already holds what the samples say.
void use_marks(NodeUse& use, const Instance& instance, std::size_t from, std::size_t to) {
  Maybe cpu, memory;
  std::uint32_t unknown = 0;
  for (std::size_t i = from; i < to; ++i) {
    add(cpu, instance[i].mark->cpu_time_ns, unknown);
    const Maybe& peak = instance[i].mark->memory_peak_bytes;
    if (peak) memory = std::max(memory.value_or(0), *peak);
  }
  const Maybe sampled = use.cpu_time_ns;
  use.flags &= ~kInterpolated;
  use.cpu_time_ns = cpu;
  if (cpu && unknown != 0) use.flags |= kPartial;
  // Tasks that did not mark the phase, or are in the one before or after it, use the node too.
  if (sampled) use.cpu_busy_ns = std::max(*sampled, cpu.value_or(0));
  if (memory) use.memory_peak_bytes = memory;
}

/// A node where no task marked the phase: it is the step's all the same.
void use_unmarked(NodeUse& use) {
  use.cpu_busy_ns = use.cpu_time_ns;
  use.cpu_time_ns = 0;
  forget_io(use);
  use.flags &= ~(kInterpolated | kIoInterpolated | kRecorderLost);
}

NodeUse node_use(const Run& run, const Instance& instance, std::size_t from, std::size_t to,
                 const UsageRow& row, const NodeUsage& usage) {
  NodeUse use = usage.of_run(run, row.begin_ns, row.end_ns);
  if (row.flags & kFolded) {
    // The interval holds more than the phase: only what the marks say counts.
    use.time_s = static_cast<double>(row.duration_ns) / 1e9;
    if (use.cpus) use.cpu_allocated_ns = *use.cpus * row.duration_ns;
    use.cpu_time_ns.reset();
    use_unmarked(use);
  } else if (from < to) {
    std::int64_t begin = instance[from].mark->begin_ns, end = instance[from].mark->end_ns;
    for (std::size_t i = from; i < to; ++i) {
      begin = std::min(begin, instance[i].mark->begin_ns);
      end = std::max(end, instance[i].mark->end_ns);
    }
    forget_io(use);
    use.flags &= ~kIoInterpolated;
    read_io(use, run, begin, end);
  }
  if (from < to) {
    use_marks(use, instance, from, to);
  } else {
    use_unmarked(use);
  }
  return use;
}

UsageRow merged_times(const Instance& instance, const TaskParts& parts) {
  UsageRow row = row_of_mark(*instance.front().mark);
  row.kind = UsageRow::Kind::kTaskPhase;
  row.step = instance.front().run->step;
  row.tasks = static_cast<int>(parts.size());
  for (const auto& [run, mark] : instance) {
    row.begin_ns = std::min(row.begin_ns, mark->begin_ns);
    row.end_ns = std::max(row.end_ns, mark->end_ns);
    row.flags |= mark->flags;
    if (mark->edge_lag_ns) {
      row.edge_lag_ns = std::max(row.edge_lag_ns.value_or(0), *mark->edge_lag_ns);
    }
  }
  row.time_ns = row.duration_ns = row.end_ns - row.begin_ns;
  row.shortest_ns = row.longest_ns = row.duration_ns;
  if ((row.flags & kFolded) == 0) return row;
  row.number = 0;
  row.duration_ns = 0;
  for (const auto& [task, part] : parts) {
    row.duration_ns = std::max(row.duration_ns, part.time_ns);
    row.instances = std::max(row.instances, part.count);
  }
  row.time_ns = row.duration_ns;
  row.shortest_ns = row.longest_ns = std::nullopt;
  return row;
}

UsageRow instance_row(const Instance& instance, const std::vector<const Run*>& runs,
                      const NodeUsage& usage) {
  const TaskParts parts = parts_of(instance);
  UsageRow row = merged_times(instance, parts);
  std::size_t at = 0;
  for (const Run* run : runs) {
    std::size_t end = at;
    while (end < instance.size() && instance[end].run == run) ++end;
    row.nodes.push_back(node_use(*run, instance, at, end, row, usage));
    at = end;
  }
  measure_waste(row.nodes);
  total_up(row);
  measure_imbalance(row, parts);
  for (const auto& [run, mark] : instance) row.events.add_part(mark->counts);
  flag_events(row);
  return row;
}

/// What all tasks of a run counted. Tasks that still run, or could not be counted, say nothing.
EventCounts events_of(const Run& run) {
  EventCounts events;
  for (const auto& counts : run.task_counts) events.add_part(counts);
  const auto known = static_cast<std::int64_t>(run.task_counts.size());
  for (std::int64_t i = known; i < run.node_tasks.value_or(0); ++i) events.add_part({});
  return events;
}

UsageRow step_row(const std::vector<const Run*>& runs, const NodeUsage& usage) {
  UsageRow row;
  row.kind = UsageRow::Kind::kStep;
  row.step = runs.front()->step;
  row.name = runs.front()->of_script() ? row.step : "step " + row.step;
  row.begin_ns = runs.front()->begin_ns;
  for (const Run* run : runs) {
    row.begin_ns = std::min(row.begin_ns, run->begin_ns);
    row.end_ns = std::max(row.end_ns, run->end_ns);
    row.tasks += static_cast<int>(run->node_tasks.value_or(0));
    if (!run->ended && !run->lost) row.flags |= kOpen;
  }
  row.time_ns = row.duration_ns = row.end_ns - row.begin_ns;
  row.shortest_ns = row.longest_ns = row.time_ns;
  for (const Run* run : runs) {
    NodeUse use = usage.of_run(*run, row.begin_ns, row.end_ns);
    use.flags &= ~(kInterpolated | kIoInterpolated);
    use.memory_peak_bytes = run_memory_peak(*run, row.begin_ns, row.end_ns);
    use.wasted_node_s = usage.waste_of_run(*run, row.begin_ns, row.end_ns);
    row.nodes.push_back(std::move(use));
  }
  const std::int64_t wanted = runs.front()->step_nodes.value_or(0);
  if (!runs.front()->of_script() && static_cast<std::int64_t>(runs.size()) < wanted) {
    row.flags |= kPartial;
  }
  total_up(row);
  for (const Run* run : runs) row.events.add(events_of(*run));
  flag_events(row);
  return row;
}

/// Finds the phase that a mark was opened in, among those of its task.
class Parents {
 public:
  explicit Parents(const std::vector<Instance>& instances) {
    for (std::size_t i = 0; i < instances.size(); ++i) {
      for (const auto& [run, mark] : instances[i]) {
        index_[{run, mark->task, mark->path}].emplace_back(mark, static_cast<int>(i));
      }
    }
  }

  int of(const Marked& inner) const {
    const std::string_view path = inner.mark->path;
    for (auto slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      const auto found = index_.find({inner.run, inner.mark->task, path.substr(0, slash)});
      if (found == index_.end()) continue;
      for (const auto& [outer, i] : found->second) {
        if (outer != inner.mark && is_inside(*inner.mark, *outer)) return i;
      }
    }
    return -1;
  }

 private:
  std::map<std::tuple<const Run*, int, std::string_view>,
           std::vector<std::pair<const PhaseMark*, int>>>
      index_;
};

std::vector<int> parents_of(const std::vector<Instance>& instances) {
  const Parents parents(instances);
  std::vector<int> parent;
  for (const auto& instance : instances) {
    const auto first = std::min_element(
        instance.begin(), instance.end(),
        [](const Marked& a, const Marked& b) { return a.mark->begin_ns < b.mark->begin_ns; });
    parent.push_back(parents.of(*first));
  }
  return parent;
}

}  // namespace

bool begins_earlier(const PhaseTree& a, const PhaseTree& b) {
  const bool a_rest = a.row.kind == UsageRow::Kind::kOutside;
  const bool b_rest = b.row.kind == UsageRow::Kind::kOutside;
  return a_rest != b_rest ? b_rest : a.row.begin_ns < b.row.begin_ns;
}

UsageRow row_of_mark(const PhaseMark& mark) {
  UsageRow row;
  row.path = row.name = mark.path;
  row.number = mark.number;
  row.begin_ns = mark.begin_ns;
  row.end_ns = mark.end_ns;
  row.instances = mark.folded() ? mark.count : 1;
  row.time_ns = row.duration_ns = mark.duration_ns();
  if (!mark.folded()) row.shortest_ns = row.longest_ns = row.time_ns;
  row.edge_lag_ns = mark.edge_lag_ns;
  row.flags = mark.flags;
  return row;
}

bool is_inside(const PhaseMark& inner, const PhaseMark& outer) {
  return outer.depth + 1 == inner.depth && inner.path.size() > outer.path.size() + 1 &&
         inner.path[outer.path.size()] == '/' && inner.path.starts_with(outer.path) &&
         inner.begin_ns >= outer.begin_ns && inner.begin_ns <= outer.end_ns;
}

std::vector<PhaseTree> nest_trees(std::vector<PhaseTree> trees, const std::vector<int>& parent) {
  std::vector<PhaseTree> top;
  for (std::size_t i = trees.size(); i-- > 0;) {
    std::stable_sort(trees[i].inside.begin(), trees[i].inside.end(), begins_earlier);
    if (parent[i] >= 0) {
      PhaseTree& outer = trees[static_cast<std::size_t>(parent[i])];
      trees[i].row.name = trees[i].row.path.substr(outer.row.path.size() + 1);
      outer.inside.push_back(std::move(trees[i]));
    } else {
      top.push_back(std::move(trees[i]));
    }
  }
  std::stable_sort(top.begin(), top.end(), begins_earlier);
  return top;
}

std::optional<UsageRow> outside_row(const UsageRow& whole, const std::vector<PhaseTree>& inside,
                                    const std::function<std::vector<NodeUse>(Interval)>& use) {
  if (inside.empty()) return std::nullopt;
  UsageRow row;
  row.kind = UsageRow::Kind::kOutside;
  row.name = "(outside)";
  row.step = whole.step;
  row.begin_ns = whole.begin_ns;
  row.end_ns = whole.end_ns;
  std::vector<Interval> covered;
  std::int64_t folded_ns = 0;
  Maybe rest = whole.cpu_time_ns;
  for (const auto& [phase, ignored] : inside) {
    if (phase.flags & kFolded) {
      folded_ns += phase.time_ns;
    } else {
      covered.emplace_back(phase.begin_ns, phase.end_ns);
    }
    if (rest && phase.cpu_time_ns) {
      *rest -= *phase.cpu_time_ns;
    } else {
      rest.reset();
    }
  }
  const auto intervals = complement({row.begin_ns, row.end_ns}, unite(covered));
  for (const auto& interval : intervals) {
    merge_nodes(row.nodes, use(interval));
  }
  total_up(row);
  row.time_ns = row.duration_ns = std::max<std::int64_t>(0, total_length(intervals) - folded_ns);
  row.flags &= ~(kInterpolated | kIoInterpolated | kCrossed);
  row.cpu_time_ns = rest;
  // A little below 0 is the resolution of the clocks; more is phases counted twice.
  const bool twice = rest && -*rest > *whole.cpu_time_ns / 20;
  if (twice) {
    row.cpu_time_ns = std::nullopt;
    row.flags |= kOverlap;
  } else if (rest) {
    row.cpu_time_ns = std::max<std::int64_t>(0, *rest);
  }
  if (row.time_ns == 0 && !twice && row.cpu_time_ns.value_or(0) == 0) return std::nullopt;
  return row;
}

void hide_script_share(UsageRow& row) {
  row.cpu_allocated_ns.reset();
  row.wasted_node_s.reset();
  row.allocated_node_s.reset();
  row.flags |= kScript;
}

PhaseTree build_step_tree(const std::vector<const Run*>& runs, const NodeUsage& usage) {
  PhaseTree step{step_row(runs, usage), {}};
  const auto instances = instances_of(runs);
  std::vector<PhaseTree> trees;
  trees.reserve(instances.size());
  for (const auto& instance : instances) trees.push_back({instance_row(instance, runs, usage), {}});
  step.inside = nest_trees(std::move(trees), parents_of(instances));
  const auto use = [&](Interval rest) {
    std::vector<NodeUse> nodes;
    nodes.reserve(runs.size());
    for (const Run* run : runs) nodes.push_back(usage.of_run(*run, rest.first, rest.second));
    measure_waste(nodes);
    return nodes;
  };
  if (auto outside = outside_row(step.row, step.inside, use)) {
    step.inside.push_back({std::move(*outside), {}});
  }
  return step;
}

}  // namespace sphase
