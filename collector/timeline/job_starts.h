// Which runs belong to which start of which job. Job ids are reused, requeued and resized, so that
// a job id alone never decides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/sqlite_db.h"

namespace sphase {

/// A start of a job as the records know it.
struct RecordKey {
  std::int64_t submit_s = 0, restart_count = 0;
  std::optional<std::int64_t> start_s, end_s;
};

/// What identifies a run within (cluster, job id).
struct RunKey {
  std::int64_t run_id = 0, restart_count = 0, begin_ns = 0;
  std::string step, node;
};

/// One start: a record, runs, or both. Indices into the vectors given.
struct JobStart {
  std::optional<std::size_t> record;
  std::vector<std::size_t> runs;
  std::int64_t restart_count = 0;
  std::int64_t begin_ns = 0;  // for the order
};

/// A run belongs to the record of its restart count that it started in, within 2 s (records have
/// whole seconds). Runs without a record are put together by restart count; as a step is on a node
/// once per start, its second occurrence begins another start. Result: oldest first.
std::vector<JobStart> match_runs(const std::vector<RecordKey>& records,
                                 const std::vector<RunKey>& runs);

}  // namespace sphase
