// All counters of one run (one step on one node): its tasks' groups, summed, each group once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spank/recorder/sources/counter_source.h"
#include "spank/recorder/sources/peak_source.h"
#include "spank/recorder/sources/process_io.h"

namespace sphase {

/// A row of table `sample`; see common/schema/node.sql. time_ns: epoch.
struct SampleRow {
  std::int64_t time_ns = 0;
  const char* kind = "tick";
  std::optional<std::int64_t> cpu_time_ns;
  Memory memory;
  std::optional<Io> io;
  std::optional<std::int64_t> processes;
};

/// Which tier a quantity has in this run, and why no better one.
struct Tier {
  std::string source;
  std::string reason;
};

class Sampler {
 public:
  Sampler(CgroupTree tree, int stepd_pid)
      : tree_(std::move(tree)), stepd_pid_(stepd_pid), io_(tree_.proc(), stepd_pid) {}

  /// Opens the sources of a task that exists but has not run its program. Cost: about 0.2 ms.
  void attach(std::uint32_t task, int pid, int outside_pid);
  /// The task was reaped: its last reading is kept, since its group goes soon.
  void detach(std::uint32_t task);

  /// CPU time of one task. nullopt: it shares its group with others, or none is known.
  struct TaskCpu {
    std::int64_t time_ns;
    std::int64_t resolution_ns;
    const char* source;  // "cgroup" | "proc"
  };
  std::optional<TaskCpu> task_cpu(std::uint32_t task);

  /// Everything. Cost: about 12 µs per task with kept descriptors and 1 µs per process; 7 µs more
  /// where the list of processes is read anew (not for an "edge" within kListAgeNs of the last).
  SampleRow sample(const char* kind);
  /// Memory of all groups together. Cost: 8 µs per group.
  Memory memory();
  /// Everything charged, page cache too. Cost: 0.5 µs per group.
  std::optional<std::int64_t> current_bytes();
  /// Most that all tasks together were charged since the last call, page cache too. nullopt: this
  /// kernel cannot tell (PeakSource), or the tasks have no group in common. Cost: 2 µs.
  std::optional<std::int64_t> take_peak();

  /// The task that a process belongs to: by its ancestors, else by its cgroup (never by an id that
  /// it claims). Cost: 10 µs per generation; once per process that marks.
  std::optional<std::uint32_t> task_of_pid(int pid);
  /// There is a process that the next sample must see.
  void list_processes_anew() { pids_time_ns_ = 0; }
  Tier cpu_tier() const { return cpu_tier_; }
  Tier memory_tier() const { return memory_tier_; }
  Tier io_tier() const { return io_.tier(); }
  const CgroupTree& tree() const { return tree_; }

  static constexpr std::int64_t kListAgeNs = 50'000'000;

 private:
  struct CpuGroup {
    std::unique_ptr<CpuSource> source;
    int tasks = 0;
    std::int64_t last_ns = 0;  // what it had when it vanished still counts
    bool known = false;
  };
  struct MemoryGroup {
    std::unique_ptr<MemorySource> source;
    std::int64_t last_peak = 0;
  };
  struct Task {
    int pid = 0;
    std::string cpu_key;
    std::unique_ptr<ProcessSource> processes;
  };
  const std::vector<int>& pids(bool anew);
  std::optional<std::uint32_t> task_by_ancestry(int pid) const;

  void open_peak(int pid, int outside_pid);

  CgroupTree tree_;
  int stepd_pid_;
  ProcessIo io_;
  std::string peak_group_;  // path of the group that all tasks so far are in
  std::optional<PeakSource> peak_;
  std::map<std::string, CpuGroup> cpu_;
  std::map<std::string, MemoryGroup> memory_;
  std::map<std::uint32_t, Task> tasks_;
  Tier cpu_tier_, memory_tier_;
  std::vector<int> pids_;  // sorted
  std::int64_t pids_time_ns_ = 0;
};

}  // namespace sphase
