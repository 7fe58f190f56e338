// Where counters come from: one interface for cgroup v1, cgroup v2 and /proc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spank/recorder/sources/cgroup_paths.h"

namespace sphase {

/// Memory charged to a group, in its parts; never one number called RSS. Unit: B. Gauges, but for
/// `peak`. nullopt: this source does not know it.
struct Memory {
  std::optional<std::int64_t> current;  // everything, page cache too
  std::optional<std::int64_t> anon;
  std::optional<std::int64_t> file;  // page cache, without shmem
  std::optional<std::int64_t> shmem;
  std::optional<std::int64_t> kernel;
  std::optional<std::int64_t> peak;  // high-water mark of `current`; monotonic

  /// What cannot be given back under pressure: everything but page cache. nullopt: not known.
  std::optional<std::int64_t> held() const;
};

/// CPU time of one group of processes (the task's cgroup, or its process tree).
class CpuSource {
 public:
  virtual ~CpuSource() = default;
  /// Unit: ns. Monotonic. nullopt: the group is gone, which is not a failure.
  virtual std::optional<std::int64_t> cpu_time_ns() = 0;
  /// A value read is within this many ns of the truth for each CPU busy at that moment.
  virtual std::int64_t resolution_ns() const = 0;
  /// Word for run.cpu_source and phase.cpu_source.
  virtual const char* tier() const = 0;
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// All parts. Cost: 7 to 10 µs with kept descriptors. nullopt: the group is gone.
  virtual std::optional<Memory> memory() = 0;
  /// `current` alone. Cost: 0.5 µs.
  virtual std::optional<std::int64_t> current_bytes() = 0;
  virtual const char* tier() const = 0;
};

/// Process ids of one group.
class ProcessSource {
 public:
  virtual ~ProcessSource() = default;
  /// Empty when the group is gone.
  virtual std::vector<int> pids() = 0;
};

/// The sources of one task. Tasks that Slurm put into one cgroup have the same `*_key`: the group
/// must be counted once. A null source comes with a reason.
struct TaskSources {
  std::string cpu_key;
  std::string memory_key;
  std::unique_ptr<CpuSource> cpu;
  std::unique_ptr<MemorySource> memory;
  std::unique_ptr<ProcessSource> processes;
  std::string cpu_reason;     // why no better tier; empty for the best
  std::string memory_reason;  // likewise
};

/// Opens the best sources there are for the task whose first process is `pid`.
/// `outside_pid`: a process known not to belong to the job (the recorder itself, once it has left
/// the job's groups): a cgroup that holds it too is not the job's own and says nothing about it.
/// Cost: about 0.2 ms; runs before the task does.
TaskSources open_task_sources(const CgroupTree& tree, int pid, int outside_pid);

std::unique_ptr<CpuSource> open_cpuacct_v1(const std::string& directory);
std::unique_ptr<CpuSource> open_cpu_v2(const std::string& directory);
std::unique_ptr<MemorySource> open_memory_v1(const std::string& directory);
std::unique_ptr<MemorySource> open_memory_v2(const std::string& directory);
std::unique_ptr<ProcessSource> open_cgroup_procs(const std::string& directory, bool unified);

}  // namespace sphase
