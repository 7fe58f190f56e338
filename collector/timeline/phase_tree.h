// Job phase › step › task phase: which phase belongs into which, and what each one used.
#pragma once

#include <vector>

#include "collector/timeline/timeline.h"
#include "collector/timeline/usage_row.h"

namespace sphase {

/// The job with everything in it, one row per instance. Rules: docs of design, "Whose phase is it?"
///  - phases marked by the shell in the job script are job phases: every node and step in their
///    interval;
///  - a step belongs to the innermost job phase that holds more than half of it;
///  - phases marked inside the tasks of one step, with the same path and number, are one phase;
///  - what lies outside all phases of a step (or of the job) is a row `(outside)`.
PhaseTree build_phase_tree(const Timeline& timeline);

/// Instances of the same path (and many steps alike) as one row each.
PhaseTree summarise(const PhaseTree& tree);

/// Depth first.
std::vector<UsageRow> flatten(const PhaseTree& tree);

}  // namespace sphase
