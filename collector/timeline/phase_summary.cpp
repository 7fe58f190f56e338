// Instances of the same path as one row: see summarise in phase_tree.h.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "collector/timeline/intervals.h"
#include "collector/timeline/phase_tree.h"

namespace sphase {
namespace {

/// Up to this many steps side by side are listed; more of the same shape become one row.
constexpr std::size_t kListedSteps = 8;

void smaller(Maybe& least, const Maybe& value) {
  if (value && (!least || *value < *least)) least = value;
}
void larger(Maybe& most, const Maybe& value) {
  if (value && (!most || *value > *most)) most = value;
}
void sum(std::optional<double>& total, const std::optional<double>& value) {
  if (value) total = total.value_or(0) + *value;
}

void merge_counters(UsageRow& into, const UsageRow& row) {
  add(into.cpu_time_ns, row.cpu_time_ns, into.flags);
  if (into.cpu_allocated_ns && row.cpu_allocated_ns) {
    *into.cpu_allocated_ns += *row.cpu_allocated_ns;
  } else {
    into.cpu_allocated_ns.reset();
  }
  larger(into.memory_peak_bytes, row.memory_peak_bytes);
  into.events.add(row.events);
  flag_events(into);
  sum(into.wasted_node_s, row.wasted_node_s);
  sum(into.allocated_node_s, row.allocated_node_s);
  if (into.nodes.empty() || row.nodes.empty()) add(into.io, row.io);
  merge_nodes(into.nodes, row.nodes);
}

void merge_imbalance(UsageRow& into, const UsageRow& row) {
  into.cpu_max_ns += row.cpu_max_ns;
  into.cpu_mean_ns += row.cpu_mean_ns;
  into.wall_max_ns += row.wall_max_ns;
  into.wall_mean_ns += row.wall_mean_ns;
  const bool cpu = into.imbalance_cpu && row.imbalance_cpu && into.cpu_mean_ns > 0;
  const bool wall = into.imbalance_wall && row.imbalance_wall && into.wall_mean_ns > 0;
  into.imbalance_cpu = cpu ? std::optional(into.cpu_max_ns / into.cpu_mean_ns) : std::nullopt;
  into.imbalance_wall = wall ? std::optional(into.wall_max_ns / into.wall_mean_ns) : std::nullopt;
}

void merge_row(UsageRow& into, const UsageRow& row) {
  into.begin_ns = std::min(into.begin_ns, row.begin_ns);
  into.end_ns = std::max(into.end_ns, row.end_ns);
  into.instances += row.instances;
  if (into.step != row.step) into.step.clear();
  into.duration_ns += row.duration_ns;
  smaller(into.shortest_ns, row.shortest_ns);
  larger(into.longest_ns, row.longest_ns);
  into.tasks = std::max(into.tasks, row.tasks);
  into.node_count = std::max(into.node_count, row.node_count);
  into.flags |= row.flags;
  larger(into.edge_lag_ns, row.edge_lag_ns);
  merge_counters(into, row);
  merge_imbalance(into, row);
}

/// Time in which at least one of them was open. Rows without an interval of their own (folded
/// ones, and what is outside of phases) count with their time.
std::int64_t open_time(const std::vector<const PhaseTree*>& same) {
  std::vector<Interval> intervals;
  std::int64_t time_ns = 0;
  for (const auto* tree : same) {
    if ((tree->row.flags & kFolded) || tree->row.kind == UsageRow::Kind::kOutside) {
      time_ns += tree->row.time_ns;
    } else {
      intervals.emplace_back(tree->row.begin_ns, tree->row.end_ns);
    }
  }
  return time_ns + total_length(unite(std::move(intervals)));
}

std::string step_range(const std::vector<const PhaseTree*>& same) {
  return "steps " + same.front()->row.step + "-" + same.back()->row.step;
}

/// Where instances overlap, as tasks drift apart, what was allocated in that time counts once.
void count_once(UsageRow& row) {
  if (row.duration_ns <= 0 || row.time_ns >= row.duration_ns) return;
  const double part = static_cast<double>(row.time_ns) / static_cast<double>(row.duration_ns);
  if (row.wasted_node_s) *row.wasted_node_s *= part;
  if (row.allocated_node_s) *row.allocated_node_s *= part;
  if (row.cpu_allocated_ns) {
    row.cpu_allocated_ns = std::llround(static_cast<double>(*row.cpu_allocated_ns) * part);
  }
}

PhaseTree merge_trees(const std::vector<const PhaseTree*>& same) {
  if (same.size() == 1) return summarise(*same.front());
  PhaseTree merged{same.front()->row, {}};
  PhaseTree all;  // everything inside any of them, side by side
  for (const auto* tree : same) {
    if (tree != same.front()) merge_row(merged.row, tree->row);
    all.inside.insert(all.inside.end(), tree->inside.begin(), tree->inside.end());
  }
  if (!merged.row.nodes.empty()) total_up_io(merged.row);
  merged.row.number = 0;
  merged.row.time_ns = open_time(same);
  if (merged.row.kind == UsageRow::Kind::kStep) {
    merged.row.name = step_range(same);
    merged.row.step.clear();
  }
  count_once(merged.row);
  merged.inside = summarise(all).inside;
  return merged;
}

std::set<std::string> paths_in(const PhaseTree& tree) {
  std::set<std::string> paths;
  for (const auto& inner : tree.inside) paths.insert(inner.row.path);
  return paths;
}

/// Rows with the same key become one.
std::string key_of(const PhaseTree& tree, bool many_steps) {
  std::string key = std::to_string(static_cast<int>(tree.row.kind)) + '\n';
  if (tree.row.kind != UsageRow::Kind::kStep) return key + tree.row.path;
  const bool script = (tree.row.flags & kScript) != 0;
  if (!many_steps || script) return key + tree.row.step;
  for (const auto& path : paths_in(tree)) key += path + '\n';
  return key + std::to_string(tree.row.node_count);
}

}  // namespace

PhaseTree summarise(const PhaseTree& tree) {
  const bool many_steps =
      std::count_if(tree.inside.begin(), tree.inside.end(), [](const PhaseTree& inner) {
        return inner.row.kind == UsageRow::Kind::kStep;
      }) > static_cast<std::ptrdiff_t>(kListedSteps);
  std::map<std::string, std::size_t> place;
  std::vector<std::vector<const PhaseTree*>> groups;
  for (const auto& inner : tree.inside) {
    const auto [at, fresh] = place.emplace(key_of(inner, many_steps), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(&inner);
  }
  PhaseTree summary{tree.row, {}};
  for (const auto& group : groups) summary.inside.push_back(merge_trees(group));
  return summary;
}

}  // namespace sphase
