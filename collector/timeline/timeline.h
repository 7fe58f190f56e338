// Everything known about one start of one job, joined into one value. Printers and learning read
// this value and nothing else; the tables behind it are in common/schema.
//
// Times are ns since the Unix epoch unless the name says s. nullopt = not known, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/timeline/sample_series.h"
#include "collector/timeline/usage_row.h"
#include "common/sqlite_db.h"

namespace sphase {

using MaybeText = std::optional<std::string>;

/// Facts about the job; columns of tables `job` and `run` of the same names.
struct JobFacts {
  std::string cluster;
  std::int64_t job_id = 0;
  std::int64_t restart_count = 0;
  Maybe array_job_id, array_task_id, het_job_id, het_offset;
  Maybe uid;
  MaybeText user, account, name, partition, qos, state, state_reason;
  Maybe exit_code;  // wait status
  Maybe submit_s, eligible_s, start_s, end_s, time_limit_s, suspended_s;
  Maybe requested_nodes, requested_cpus, requested_time_limit_s;  // at submission
  MaybeText requested_memory;
  MaybeText admin_comment;  // holds the audit line of job_submit/phase_resize: learn/audit.h
  MaybeText array_tasks;    // tasks of an array that wait as one record: "4-9%2"
  Maybe helper_of;          // job that it was submitted to expand
  MaybeText source;         // 'slurmctld', 'slurmdbd', both; nullopt: neither knew it
  Maybe seen_ns;
};

/// A time in which the job's tasks were stopped, as far as a look saw it; the sum that Slurm knows
/// is JobFacts::suspended_s.
struct Suspension {
  std::int64_t begin_ns = 0;
  Maybe end_ns;  // nullopt: still
};

/// Why the job waited, from the first look that saw it to the first that saw another reason.
struct WaitReason {
  std::int64_t begin_ns = 0;
  Maybe end_ns;  // nullopt: still
  std::string reason;
};

struct AllocatedNode {
  std::string node;
  Maybe cpus, memory_bytes;
};

/// An interval with constant nodes, CPUs and memory.
struct Allocation {
  std::int64_t begin_ns = 0;
  Maybe end_ns;  // nullopt: still held
  MaybeText state, expression;
  Maybe node_count, cpus, memory_bytes;
  std::vector<AllocatedNode> nodes;
  bool deduced = false;  // no scheduler record: taken from the runs
};

/// A row of table `phase`, closed where it was left open.
struct PhaseMark {
  bool shell = false;  // scope
  int task = 0;
  std::string path;
  std::int64_t number = 0, depth = 0, count = 1;
  std::int64_t begin_ns = 0, end_ns = 0;
  Maybe wall_ns, cpu_time_ns, cpu_resolution_ns, memory_peak_bytes, edge_lag_ns;
  std::uint32_t flags = 0;  // PhaseFlag and RowFlag
  std::vector<Counted> counts;

  bool folded() const { return (flags & kFolded) != 0; }
  std::int64_t duration_ns() const { return folded() && wall_ns ? *wall_ns : end_ns - begin_ns; }
};

/// One step on one node; columns of table `run`.
struct Run {
  std::int64_t run_id = 0;
  std::string step, node;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;               // or the last sign of life
  bool ended = false;                    // it ended as it should; otherwise it still goes on, or is
  bool lost = false;                     // lost: the recorder went before the step
  Maybe clock_offset_ns, clock_band_ns;  // of NodeClock, when it began
  std::int64_t clock_shift_ns = 0;       // taken off the node's times
  Maybe node_index, step_nodes, step_tasks, node_tasks, job_cpus, step_cpus;
  Maybe job_memory_bytes, step_memory_bytes, tick_ns, period_ns;
  MaybeText cpu_source, cpu_reason, memory_source, memory_reason, io_source, io_reason;
  MaybeText counter_source, counter_reason;
  std::vector<std::vector<Counted>> task_counts;  // of each task that has some, its whole life
  MaybeText end_reason, profile, sphase_version, slurm_version;
  std::int64_t markers = 0, markers_dropped = 0, markers_invalid = 0, samples_dropped = 0;
  std::int64_t segments_unreadable = 0;  // sealed rows in cluster.db that are damaged
  Maybe edge_lag_p50_ns, edge_lag_p99_ns, recorder_cpu_ns, recorder_rss_bytes;
  Maybe memory_high_bytes;  // the kernel's high-water mark; page cache too
  bool killed = false;      // a task was ended by SIGKILL
  bool crashed = false;     // … by SIGSEGV, SIGABRT, SIGBUS, SIGFPE or SIGILL
  SampleSeries samples;
  std::vector<PhaseMark> phases;                                // by begin
  std::vector<std::pair<std::string, std::string>> attributes;  // "path/key", value

  bool of_script() const { return step == "batch" || step == "interactive"; }
};

/// A node's clock minus the collector's when its first run began, and how far from the truth that
/// may be. Where the offset is larger than the band, times of the node in the Timeline are
/// corrected.
struct NodeClock {
  std::string node;
  std::int64_t offset_ns = 0, band_ns = 0;
};

struct Notice {
  std::string step, node, code, text;
  std::int64_t time_ns = 0;
};

/// One start of one job.
struct Timeline {
  JobFacts job;
  std::int64_t begin_ns = 0, end_ns = 0;  // of the allocation, or of the runs
  bool running = false;                   // not ended as far as is known
  int starts = 1;                         // of this submission that are known
  std::vector<Allocation> allocations;
  std::vector<Suspension> suspensions;  // by time; they do not overlap
  std::vector<WaitReason> waits;        // by time
  std::vector<std::int64_t> helpers;    // job ids submitted to expand this one
  std::vector<Run> runs;                // by step, then node
  std::vector<Notice> notices;
  std::vector<NodeClock> clocks;  // of nodes that ship; by node
  /// Of a component of a heterogeneous job: phases marked in the script, which runs in the leader.
  std::vector<PhaseMark> leader_phases;
  std::vector<UsageRow> rows;        // the job, its phases, steps and their phases; summarised
  std::vector<UsageRow> detail;      // the same, one row per instance
  std::vector<NodeUse> nodes;        // each allocated node over the whole job
  std::vector<std::string> missing;  // what is not known and why, a sentence each
};

/// Which job: "123", "123_4", "123+1", each with or without ".STEP".
struct JobSelector {
  std::int64_t job_id = 0;
  Maybe array_task, het_offset;
  std::string step;     // "" = all
  std::string cluster;  // "" = any
  bool every = false;   // also earlier jobs of the same number, and every task of an array
  bool exact = false;   // the raw job id alone: not the array or the components that it leads
};

Result<JobSelector> parse_job_selector(const std::string& text);

/// Every start of the job that is meant, oldest first. Errors: unknown job, or which of several.
Result<std::vector<Timeline>> load_timelines(Database& db, const JobSelector& selector);

}  // namespace sphase
