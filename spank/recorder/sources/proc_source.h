// Fallback sources: what /proc says about a task's process tree. Poorer than a cgroup: a process
// that left its parents (a daemon) is lost, and CPU time comes in clock ticks of 10 ms.
#pragma once

#include <map>

#include "spank/recorder/sources/counter_source.h"

namespace sphase {

/// One /proc/<pid>/stat line. Source: proc(5). Unit of times: ns.
struct ProcStat {
  int ppid = 0;
  std::int64_t own_cpu_ns = 0;       // utime + stime
  std::int64_t children_cpu_ns = 0;  // cutime + cstime: children that were waited for
  std::int64_t start_ticks = 0;      // tells a reused pid
};
std::optional<ProcStat> parse_proc_stat(std::string_view text);

/// The process `root` and everything below it, by /proc/<pid>/task/<tid>/children.
class ProcTree : public ProcessSource {
 public:
  ProcTree(std::string proc, int root) : proc_(std::move(proc)), root_(root) {}
  std::vector<int> pids() override;

 private:
  std::string proc_;
  int root_;
};

/// Sum over live processes of own and waited-for CPU time, plus what ended without being waited
/// for inside the tree, as far as it had been seen. Never decreases.
class ProcCpu : public CpuSource {
 public:
  ProcCpu(std::string proc, int root) : proc_(std::move(proc)), tree_(proc_, root) {}
  std::optional<std::int64_t> cpu_time_ns() override;
  std::int64_t resolution_ns() const override;
  const char* tier() const override { return "proc stat"; }

 private:
  std::int64_t lost_since(const std::map<int, ProcStat>& now) const;

  std::string proc_;
  ProcTree tree_;
  std::map<int, ProcStat> known_;
  std::int64_t carried_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

/// Sum of resident memory over the tree; anon = resident - shared. Source: /proc/<pid>/statm.
class ProcMemory : public MemorySource {
 public:
  ProcMemory(std::string proc, int root) : proc_(std::move(proc)), tree_(proc_, root) {}
  std::optional<Memory> memory() override;
  std::optional<std::int64_t> current_bytes() override;
  const char* tier() const override { return "proc statm"; }

 private:
  std::string proc_;
  ProcTree tree_;
};

}  // namespace sphase
