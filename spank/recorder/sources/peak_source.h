// The kernel's high-water mark of memory, set anew whenever we like: exact peaks of short
// stretches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spank/recorder/file.h"
#include "spank/recorder/sources/cgroup_paths.h"

namespace sphase {

/// memory.peak of a cgroup v2 through a descriptor of our own. What is written to it sets the mark
/// anew for this descriptor alone: Slurm's readings, and anybody else's, stay what they were.
/// Source: kernel Documentation/admin-guide/cgroup-v2.rst, memory.peak, since 6.12.
class PeakSource {
 public:
  /// nullopt: no such file, or a kernel that cannot do it (it refuses the first write).
  static std::optional<PeakSource> open(const std::string& directory);

  /// Highest memory.current (page cache too) since the last call, and the mark set anew.
  /// Unit: B. nullopt: the group is gone. Cost: 1 to 2 µs.
  std::optional<std::int64_t> take();

 private:
  explicit PeakSource(Fd peak) : peak_(std::move(peak)) {}
  bool set_anew() const;

  Fd peak_;
};

/// Path of the v2 group that holds the task and further tasks of its step, but neither
/// `outside_pid` nor `stepd_pid`: Slurm's ".../user" above the task's own. Else the task's own.
/// nullopt: no v2 group is the task's.
std::optional<std::string> group_of_tasks(const CgroupTree& tree, int pid, int outside_pid,
                                          int stepd_pid);

/// True if `group` is `path` or above it.
bool holds(const std::string& group, const std::string& path);

}  // namespace sphase
