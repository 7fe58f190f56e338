// One step: its nodes, and the phases that its tasks marked.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "collector/timeline/intervals.h"
#include "collector/timeline/node_use.h"
#include "collector/timeline/timeline.h"
#include "collector/timeline/usage_row.h"

namespace sphase {

/// The step with its phases, one per path and number, merged over tasks and nodes: from the first
/// begin to the last end, CPU time summed over the tasks, memory the most of any task's row on the
/// node, I/O from the node's samples. `runs`: all of one step, not empty.
PhaseTree build_step_tree(const std::vector<const Run*>& runs, const NodeUsage& usage);

/// Times, number, flags of one mark; nothing about nodes.
UsageRow row_of_mark(const PhaseMark& mark);

/// True if `inner` was opened directly in `outer` (both of one task).
bool is_inside(const PhaseMark& inner, const PhaseMark& outer);

/// Moves each tree into its parent (index, -1: stays), sorted by begin. A parent comes before
/// what is in it.
std::vector<PhaseTree> nest_trees(std::vector<PhaseTree> trees, const std::vector<int>& parent);

/// What `whole` did outside of the phases `inside` it; nullopt if there are no phases. CPU time is
/// the difference, so that the sums agree; `use` tells the rest, with waste, for one interval.
std::optional<UsageRow> outside_row(const UsageRow& whole, const std::vector<PhaseTree>& inside,
                                    const std::function<std::vector<NodeUse>(Interval)>& use);

/// The job script holds all the CPUs that its steps use: nothing is allocated to it alone.
void hide_script_share(UsageRow& row);

/// By begin; what is outside of phases comes last.
bool begins_earlier(const PhaseTree& a, const PhaseTree& b);

}  // namespace sphase
