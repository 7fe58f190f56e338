// What is known at a marker, and what a phase became: plain values between tracker and store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spank/recorder/papi/papi_count.h"

namespace sphase {

/// Counters of one edge (a begin or an end). Times: ns, all on one clock.
struct Edge {
  std::int64_t time_ns = 0;  // the marker fired
  std::int64_t lag_ns = 0;   // from there to the read of the counters
  std::uint32_t client = 0;  // process that marked
  /// CPU time of the marking process at the marker, all its threads. nullopt: no stamp near.
  std::optional<std::int64_t> process_cpu_ns;
  std::int64_t process_uncertainty_ns = 0;  // age of the stamp it was carried on from
  /// CPU time of the whole task, read `lag_ns` later. nullopt: tasks share a group, or it is gone.
  std::optional<std::int64_t> task_cpu_ns;
  std::int64_t task_resolution_ns = 0;  // per busy CPU
  const char* task_source = nullptr;    // "cgroup" | "proc"
  PapiCounts counts;                    // of the whole task, read with task_cpu_ns
};

/// CPU time between two edges, and how sure it is.
struct CpuTime {
  std::int64_t time_ns = 0;
  std::int64_t resolution_ns = 0;
  const char* source = nullptr;  // phase.cpu_source
};

/// The marking process's own stamps where they agree with the task's group (exact); the group where
/// child processes did part of the work (a tick per busy CPU). nullopt: neither is known.
std::optional<CpuTime> cpu_between(const Edge& begin, const Edge& end);

/// What was counted between two edges, per event. Empty: this task has no counters.
std::vector<PapiCount> counts_between(const Edge& begin, const Edge& end);
/// The part of counts that falls to `share` (0..1) of the time.
std::vector<PapiCount> part_of(std::vector<PapiCount> counts, double share);

/// A row of table `phase`; see common/schema/node.sql.
struct PhaseRow {
  bool shell = false;
  std::uint32_t task = 0;
  std::string path;
  std::int64_t number = 0;
  int depth = 0;
  std::int64_t count = 1;
  std::int64_t threads = 1;
  std::int64_t begin_ns = 0;
  std::optional<std::int64_t> end_ns;
  std::optional<std::int64_t> wall_ns;
  std::optional<CpuTime> cpu;
  std::optional<std::int64_t> memory_peak_bytes;
  const char* memory_peak_source = "sampled";  // of memory_peak_bytes; see node.sql
  std::int64_t edge_lag_ns = 0;
  std::uint32_t flags = 0;
  std::vector<PapiCount> counts;  // rows of table `counter`
};

}  // namespace sphase
