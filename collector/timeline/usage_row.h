// Rows of the phase table: the job, its phases, its steps, and their phases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/timeline/event_counts.h"
#include "collector/timeline/sample_series.h"
#include "common/vocabulary.h"

namespace sphase {

/// What the report adds to the PhaseFlag bits.
using RowFlag = std::uint32_t;
inline constexpr RowFlag kOpen = 1u << 16;     // still going on when last heard of
inline constexpr RowFlag kCrossed = 1u << 17;  // a step crosses its edge: CPU read by interpolation
inline constexpr RowFlag kIoInterpolated = 1u << 18;  // I/O computed from two samples at an edge
inline constexpr RowFlag kNoCpu = 1u << 19;  // CPU time or CPUs not known: waste from memory alone
inline constexpr RowFlag kNoMemory = 1u
                                     << 20;  // memory or its limit not known: waste from CPU alone
inline constexpr RowFlag kPartial = 1u << 21;  // some node or task told nothing: sums of the others
inline constexpr RowFlag kOverlap = 1u << 22;  // phases of threads hold each other's CPU time
inline constexpr RowFlag kScript = 1u << 23;   // the job script: holds the CPUs that its steps use
inline constexpr RowFlag kSomeCounted = 1u << 24;  // events of some of its tasks only
inline constexpr RowFlag kScaled = 1u << 25;       // events took turns: counts are scaled up

/// The I/O counters of one run at a moment.
struct IoCounters {
  Maybe read_bytes, write_bytes, read_call_bytes, write_call_bytes;
};

/// What one node did in a row's interval.
struct NodeUse {
  std::string node;
  double time_s = 0;       // allocated in the interval
  double unknown_s = 0;    // of it, after its recorders were last heard of
  double cpu_share = 1;    // of the job's CPUs on the node, that the row holds
  Maybe cpus;              // allocated
  Maybe cpu_time_ns;       // used by the row's tasks
  Maybe cpu_busy_ns;       // used by everything in the step; nullopt: the same as cpu_time_ns
  Maybe cpu_allocated_ns;  // CPUs allocated × time
  Maybe memory_peak_bytes, memory_allocated_bytes;
  IoCounters io;  // moved in the interval
  /// Where that was read from, so that intervals which overlap count once: the run (-1: several),
  /// the interval, and the counters at its end.
  std::int64_t io_run_id = 0, io_begin_ns = 0, io_end_ns = 0;
  IoCounters io_at_end;
  std::uint32_t flags = 0;  // RowFlag
  bool idle = false;        // allocated, and no process of any step in it
  bool silent = false;      // it should have told something, and did not
  std::optional<double> wasted_node_s;
};

/// Node-seconds allocated and not used: (1 - used share) × time × share of the job's CPUs, where
/// the used share is the larger of CPU used / CPU allocated and memory peak / memory allocated (the
/// dominant share: Ghodsi et al., DRF, NSDI 2011, section 4). From the one that is known where only
/// one is; nullopt where none is. Time of which nothing is known is neither used nor wasted.
std::optional<double> wasted_node_s(const NodeUse& use);

struct UsageRow {
  enum class Kind { kJob, kJobPhase, kStep, kTaskPhase, kOutside };
  Kind kind = Kind::kJob;
  int level = 0;            // indentation: depth in the tree
  std::string name;         // what to print: last component of the path, or "step 0"
  std::string path;         // of a phase, as marked
  std::string step;         // "" for job and job phases
  std::int64_t number = 0;  // of an instance, 0: several in one row
  std::int64_t instances = 1;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t time_ns = 0;       // time in which at least one instance was open
  std::int64_t duration_ns = 0;   // sum over the instances; larger where these overlap
  Maybe shortest_ns, longest_ns;  // of one instance; nullopt if all of them are folded
  int tasks = 0, node_count = 0;

  Maybe cpu_time_ns, cpu_allocated_ns;
  Maybe memory_peak_bytes;  // of the node that had most
  IoCounters io;
  std::optional<double> wasted_node_s, allocated_node_s;
  /// Largest / mean over the tasks that marked it, weighted by time over several instances (1 =
  /// even); 1 / load balance of Lopez et al., TALP, PERMAVOST 2021.
  std::optional<double> imbalance_cpu, imbalance_wall;
  double cpu_max_ns = 0, cpu_mean_ns = 0, wall_max_ns = 0, wall_mean_ns = 0;  // summed numerators
  Maybe edge_lag_ns;
  EventCounts events;       // of its tasks; a job and its phases: of all steps inside
  std::uint32_t flags = 0;  // PhaseFlag | RowFlag
  std::vector<NodeUse> nodes;

  std::optional<double> efficiency() const {
    if (!cpu_time_ns || !cpu_allocated_ns || *cpu_allocated_ns <= 0) return std::nullopt;
    return static_cast<double>(*cpu_time_ns) / static_cast<double>(*cpu_allocated_ns);
  }
  std::optional<double> cpus_allocated() const {
    if (!cpu_allocated_ns || time_ns <= 0) return std::nullopt;
    return static_cast<double>(*cpu_allocated_ns) / static_cast<double>(time_ns);
  }
  std::optional<double> cpus_busy() const {
    if (!cpu_time_ns || time_ns <= 0) return std::nullopt;
    return static_cast<double>(*cpu_time_ns) / static_cast<double>(time_ns);
  }
};

/// A row with what is inside it.
struct PhaseTree {
  UsageRow row;
  std::vector<PhaseTree> inside;
};

/// Fills in wasted_node_s.
void measure_waste(std::vector<NodeUse>& nodes);

/// Sums a row up from its nodes: CPU, memory, I/O, waste, flags.
void total_up(UsageRow& row);

/// The I/O of a row from its nodes.
void total_up_io(UsageRow& row);

/// Adds what nodes did in another interval that did not begin before: sums, and the larger memory
/// peak. By node name.
void merge_nodes(std::vector<NodeUse>& into, const std::vector<NodeUse>& more);

/// Sets the flags that its events are worth.
void flag_events(UsageRow& row);

/// Adds what is known; nullopt adds nothing.
void add(IoCounters& total, const IoCounters& more);

/// Adds `value` to `total`. nullopt adds nothing and sets kPartial; all nullopt stays nullopt.
void add(Maybe& total, const Maybe& value, std::uint32_t& flags);

}  // namespace sphase
