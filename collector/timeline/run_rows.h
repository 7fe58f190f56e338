// Rows of a run, as they lie in cluster.db, into the Run of a Timeline. Used by run_load.cpp alone.
#pragma once

#include <vector>

#include "collector/timeline/timeline.h"
#include "common/segment.h"

namespace sphase {

/// `parts`: of table `sample`, `phase` or `counter` of this run, as StoredRows gives them.
void put_samples(const std::vector<Segment>& parts, Run& run);
/// Needs begin, end and state of the run. A phase that is open gets the run's end, and a flag.
void put_phases(const std::vector<Segment>& parts, Run& run);
/// Of phases, which must be there, and of whole tasks.
void put_counters(const std::vector<Segment>& parts, Run& run);

}  // namespace sphase
