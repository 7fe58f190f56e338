// What the scheduler knows about jobs, from slurmctld and slurmdbd, brought into the tables job,
// allocation and allocation_node.
//
// Two queries in all for jobs, however many: one to each daemon. Facts that the code stands on
// (Slurm 22.05.8, run): at a resize slurmdbd ends the row (state RESIZING) and begins another one
// whose *submit* time is the time of the resize; its start time is the job's own once the job has
// ended. At a requeue the row ends (state REQUEUED) and another one begins with a new submit time;
// slurmctld shows the new submit time too. So rows of one submission are found by their order, and
// `submit_time` in our tables is that of the first one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/timeline/timeline.h"
#include "common/sqlite_db.h"

namespace sphase {

/// One job as slurmctld shows it, or one interval of it as slurmdbd keeps it.
struct JobRow {
  JobFacts facts;           // start, end, submit as the daemon says; restart_count: see restarts
  Maybe restarts;           // slurmctld alone knows it
  Maybe resize_s;           // slurmctld: last change of size
  std::string nodes, tres;  // host list expression; AllocTRES
  Maybe node_count, cpus, memory_bytes;  // allocated, over all nodes
  std::vector<AllocatedNode> each_node;  // expanded; CPUs and memory from slurmctld alone
};

struct RecordQuery {
  std::vector<std::string> clusters;
  std::vector<std::int64_t> job_ids;
  std::int64_t since_s = 0;  // nothing that ended before matters
};

/// What a partition lets a job ask for; columns of table `partition_limits`.
struct PartitionRow {
  std::string cluster, name;
  Maybe nodes_least, nodes_most, time_most_s;
  Maybe memory_most_bytes, cpus_most;  // of one node
};

/// Where records come from. An error is one sentence, and never the end of a merge.
struct RecordSource {
  virtual ~RecordSource() = default;
  /// Jobs that slurmctld still holds. One RPC for all jobs of the cluster (`slurm_load_jobs`).
  virtual Result<std::vector<JobRow>> from_slurmctld(const RecordQuery& query) = 0;
  /// Every interval that slurmdbd keeps. One query (`slurmdb_jobs_get` with duplicates). Empty
  /// where the cluster keeps no accounts.
  virtual Result<std::vector<JobRow>> from_slurmdbd(const RecordQuery& query) = 0;
  /// Every partition, hidden ones too. Two RPCs (`slurm_load_partitions`, `slurm_load_node`).
  virtual Result<std::vector<PartitionRow>> partitions() = 0;
};

/// libslurm with the slurm.conf of this host ($SLURM_CONF).
std::unique_ptr<RecordSource> slurm_records();

/// One start of one job with its allocations.
struct JobRecord {
  JobFacts facts;        // submit_s: of the first start
  Maybe shown_submit_s;  // as the daemon shows this start
  std::vector<Allocation> allocations;
  std::vector<std::string> tres;  // of each allocation
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

/// Writes them; what only an earlier look knew (CPUs per node, the quality of service) is kept.
/// One transaction.
Status store_records(Database& cluster, const std::vector<JobRecord>& records, std::int64_t now_ns);

struct RecordOutcome {
  std::int64_t jobs = 0;              // starts written
  std::vector<std::string> warnings;  // a daemon that could not be asked
};

/// Asks for every job in cluster.db that is not known to have ended, and stores the answer.
Result<RecordOutcome> update_records(Database& cluster, RecordSource& source, std::int64_t now_ns);

/// Asks for the limits of every partition and stores them, unless it did so within ten minutes.
/// Partitions that are gone from a cluster that answered are forgotten. One transaction.
Status update_partitions(Database& cluster, RecordSource& source, std::int64_t now_ns);

/// "cpu=4,mem=2000M,node=2,billing=4" from slurmdbd's "1=4,2=2000,4=2,5=4"; others stay numbers.
std::string tres_in_words(const std::string& tres);
/// The count of a TRES ("mem" in B) in either notation.
Maybe tres_count(const std::string& tres, const std::string& name);
/// "4000M per node", "1000M per CPU"; nullopt for 0. It may carry Slurm's MEM_PER_CPU bit.
MaybeText requested_memory(std::uint64_t megabytes);
/// Memory that a job can get of a node, in MiB. `most` is a partition's MaxMemPerNode, or
/// MaxMemPerCPU with Slurm's MEM_PER_CPU bit; 0 and Slurm's "not set" are no cap.
std::uint64_t node_memory_mib(std::uint64_t memory_mib, std::uint64_t cpus, std::uint64_t most);
/// Memory of each node from the text of slurm_print_job_info, the only public way to it:
/// "     Nodes=n[1-2] CPU_IDs=0-1 Mem=300 GRES=". Pairs of host list expression and B.
std::vector<std::pair<std::string, std::int64_t>> parse_node_memory(const std::string& text);
/// "Resources" from the same text: "   JobState=PENDING Reason=Resources Dependency=(null)".
MaybeText parse_reason(const std::string& text);
/// Slurm's word for a job state (base state and flags), e.g. COMPLETED, RESIZING, REQUEUED.
std::string state_word(std::uint32_t state);

}  // namespace sphase
