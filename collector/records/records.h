// What the scheduler knows about jobs, from slurmctld and slurmdbd, brought into the tables job,
// allocation, allocation_node, suspension and wait_reason.
//
// Two queries in all for jobs, however many: one to each daemon. Facts that the code stands on
// (Slurm 22.05.8, run):
// - At a resize slurmdbd ends the row (state RESIZING) and begins another one whose *submit* time
//   is the time of the resize; its start time is the job's own, or that of the resize. `suspended`
//   counts anew in each row, and slurmctld's num_nodes and tres_req_str are overwritten.
// - At a requeue the row ends (state REQUEUED) and another one begins with a new submit time, which
//   slurmctld shows too. So rows of one submission are found by their order, and `submit_time` in
//   our tables is that of the first one.
// - A helper that gave its nodes to the job that it expands is COMPLETED in both daemons, but its
//   last row in slurmdbd never gets an end, and slurmctld shows start + limit as its end.
//   slurmctld shows `expand:J` only while the helper waits; slurmdbd keeps its command line.
// - A job that is cancelled while it is suspended ends when it was suspended.
// - A job that was cancelled before it started has slurmctld's start time = end time and no nodes.
// - Of an array, the tasks that wait are one record with the array's own number; the last one of
//   them to start keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/records/record_source.h"
#include "collector/timeline/timeline.h"
#include "common/sqlite_db.h"

namespace sphase {

class RecordPoller;

/// An allocation as the daemons tell of it.
struct HeldAllocation : Allocation {
  std::string tres;      // AllocTRES
  bool settled = false;  // slurmdbd has ended it: nothing else was held in between
};

/// One start of one job with its allocations.
struct JobRecord {
  JobFacts facts;        // submit_s: of the first start
  Maybe shown_submit_s;  // as the daemon shows this start
  std::vector<HeldAllocation> allocations;
  Maybe suspend_s, ran_s;  // as in JobRow
};

/// A run that tells which start it was of: helps where older rows are gone from slurmdbd.
struct Witness {
  std::string cluster;
  std::int64_t job_id = 0, restart_count = 0, begin_s = 0;
};

/// Joins both daemons' rows into starts: resized intervals into one start, requeued ones counted.
std::vector<JobRecord> assemble_records(const std::vector<JobRow>& slurmctld,
                                        const std::vector<JobRow>& slurmdbd,
                                        const std::vector<Witness>& witnesses);

/// Writes them; what only an earlier look knew (CPUs per node, the quality of service, the request
/// before a resize, allocations while slurmdbd was away) is kept. One transaction.
Status store_records(Database& cluster, const std::vector<JobRecord>& records, std::int64_t now_ns);

struct RecordOutcome {
  std::int64_t jobs = 0;              // starts written
  std::vector<std::string> warnings;  // a daemon that is away, what is not shown to us
};

struct RecordOptions {
  bool every_job = false;          // all that slurmctld holds, not only jobs with telemetry
  RecordPoller* poller = nullptr;  // says when a daemon may be asked; nullptr: now
};

/// Asks for every job that is open (table open_job), and stores the answer.
Result<RecordOutcome> update_records(Database& cluster, RecordSource& source, std::int64_t now_ns,
                                     const RecordOptions& options = {});

/// Asks for the limits of every partition and stores them, unless it did so within ten minutes.
/// Partitions that are gone from a cluster that answered are forgotten. One transaction.
Status update_partitions(Database& cluster, RecordSource& source, std::int64_t now_ns);

}  // namespace sphase
