// A process in cgroups of its own, made for a bench the way Slurm makes a task's.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "spank/recorder/sources/cgroup_paths.h"

namespace sphase {

struct BenchGroup {
  std::string directory;
  std::vector<std::string> files;  // those that a recorder reads
};

/// A child that sleeps, in v1 groups that are removed with it.
class BenchTask {
 public:
  explicit BenchTask(const CgroupTree& tree) : pid_(fork()) {
    if (pid_ == 0) {
      closefrom(3);  // or the links of the recorders before it would never end
      while (true) pause();
    }
    const std::vector<std::pair<std::string, std::vector<std::string>>> wanted = {
        {"cpuacct", {"cpuacct.usage", "cgroup.procs"}},
        {"memory",
         {"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.stat",
          "memory.kmem.usage_in_bytes"}}};
    for (const auto& [controller, files] : wanted) {
      const CgroupMount* const mount = tree.mount_of(controller);
      if (mount == nullptr) continue;
      const std::string directory = mount->mount_point + "/sphase_bench_" + std::to_string(pid_);
      if (mkdir(directory.c_str(), 0755) != 0) continue;
      std::ofstream procs(directory + "/cgroup.procs");
      procs << pid_;
      if (procs.flush()) groups_.push_back({directory, files});
    }
  }
  ~BenchTask() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const BenchGroup& group : groups_) rmdir(group.directory.c_str());
  }
  BenchTask(BenchTask&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), groups_(std::move(other.groups_)) {}
  BenchTask& operator=(BenchTask&&) = delete;

  int pid() const { return pid_; }
  const std::vector<BenchGroup>& groups() const { return groups_; }
  bool complete() const { return groups_.size() == 2; }

 private:
  int pid_;
  std::vector<BenchGroup> groups_;
};

}  // namespace sphase
