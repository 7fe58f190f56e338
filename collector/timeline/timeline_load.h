// Reads one start of a job from cluster.db. Used by timeline.cpp alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/timeline/job_starts.h"
#include "collector/timeline/timeline.h"

namespace sphase {

/// A number in a cluster: what all starts of it have in common.
struct JobNumber {
  std::string cluster;
  std::int64_t job_id = 0;
  auto operator<=>(const JobNumber&) const = default;
};

/// Jobs that a selector may mean.
Result<std::vector<JobNumber>> find_jobs(Database& db, const JobSelector& selector);

/// True if the tasks "1,4-9,10-20:2%5" of an array hold this one. Anything else holds none.
bool array_holds(std::string_view tasks, std::int64_t task);

/// Records and runs of one number.
Result<std::vector<RecordKey>> load_record_keys(Database& db, const JobNumber& job);
Result<std::vector<RunKey>> load_run_keys(Database& db, const JobNumber& job);

/// Facts and allocations of one record.
Status load_record(Database& db, const JobNumber& job, const RecordKey& key, Timeline& timeline);

/// Facts of the job as a run tells them, where there is no record.
Status load_facts_of_run(Database& db, std::int64_t run_id, JobFacts& facts);

/// The runs of a start with their samples and phases, by step, then node. What was left open is
/// closed: a run is lost if it has no end although its job or step has ended (or the plugin saw its
/// recorder go, or it had been silent for five minutes when its file was merged); its open phases
/// end at its last sign of life.
Result<std::vector<Run>> load_runs(Database& db, const std::vector<std::int64_t>& run_ids,
                                   Maybe job_end_ns);

/// Notices of the start: of its runs, or of its time where they belong to no run.
Status load_notices(Database& db, const JobNumber& job, const JobStart& start,
                    const std::vector<RunKey>& runs, Timeline& timeline);

/// What the nodes' files themselves said that is missing: rows given up, files set aside.
Result<std::vector<std::string>> load_source_problems(Database& db, const Timeline& timeline);

}  // namespace sphase
