// Where the scheduler's records come from: slurmctld and slurmdbd, or a fake in a test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// One job as slurmctld shows it, or one interval of it as slurmdbd keeps it.
struct JobRow {
  JobFacts facts;           // start, end, submit as the daemon says; restart_count: see restarts
  Maybe restarts;           // slurmctld alone knows it
  Maybe resize_s;           // slurmctld: last change of size
  Maybe suspend_s;          // slurmctld: when it was last suspended, or went on after that
  Maybe ran_s;              // slurmctld: time it had run when it was last suspended
  bool gave_away = false;   // slurmctld: all its nodes went to another job, as a helper's do
  std::string nodes, tres;  // host list expression; AllocTRES
  Maybe node_count, cpus, memory_bytes;  // allocated, over all nodes
  std::vector<AllocatedNode> each_node;  // expanded; CPUs and memory from slurmctld alone
};

struct RecordQuery {
  std::vector<std::string> clusters;
  std::vector<std::int64_t> job_ids;
  std::int64_t since_s = 0;  // nothing that ended before matters
  bool every_job = false;    // slurmctld: all that it holds, not only `job_ids`
};

/// What a partition lets a job ask for; columns of table `partition_limits`.
struct PartitionRow {
  std::string cluster, name;
  Maybe nodes_least, nodes_most, time_most_s;
  Maybe memory_most_bytes, cpus_most;  // of one node
};

/// An error is one sentence, and never the end of a merge.
struct RecordSource {
  virtual ~RecordSource() = default;
  /// Jobs that slurmctld still holds: those asked for, helpers of these, and jobs that gave all
  /// their nodes away. One RPC for all jobs of the cluster (`slurm_load_jobs`); none of them where
  /// slurmctld says that nothing has changed since the last answer to no smaller a question.
  virtual Result<std::vector<JobRow>> from_slurmctld(const RecordQuery& query) = 0;
  /// Every interval that slurmdbd keeps. One query (`slurmdb_jobs_get` with duplicates). Empty
  /// where the cluster keeps no accounts.
  virtual Result<std::vector<JobRow>> from_slurmdbd(const RecordQuery& query) = 0;
  /// Every partition, hidden ones too. Two RPCs (`slurm_load_partitions`, `slurm_load_node`).
  virtual Result<std::vector<PartitionRow>> partitions() = 0;
  /// What the daemons do not show us, a sentence each: PrivateData. Known after an answer.
  virtual std::vector<std::string> hidden() { return {}; }
};

/// libslurm with the slurm.conf of this host ($SLURM_CONF). May be used from any thread, by one at
/// a time. A call waits as long as libslurm does: MessageTimeout, and where slurmctld is away,
/// about 2 * MessageTimeout.
std::unique_ptr<RecordSource> slurm_records();

}  // namespace sphase
