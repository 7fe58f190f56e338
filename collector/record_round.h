// The scheduler's records as a part of a round of `merge` or `watch`.
#pragma once

#include "collector/ingest/merge_all.h"
#include "collector/records/records.h"

namespace sphase {

/// One look at both daemons; one that does not answer is told, and no reason to fail.
Status look_at_records(Database& cluster, RecordSource& source, const RecordOptions& options,
                       MergeOutcome& outcome);

}  // namespace sphase
