// Where a process sits in each cgroup hierarchy, from /proc/<pid>/cgroup and mountinfo.
//
// Never from a pattern: paths differ by cgroup version, Slurm version, site and container.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sphase {

/// One cgroup hierarchy as this host mounts it.
struct CgroupMount {
  std::vector<std::string> controllers;  // v1: "memory", "cpuacct", …; empty for v2
  std::string mount_point;               // "/sys/fs/cgroup/memory"
  std::string root;                      // part of the hierarchy that is mounted there, "/" mostly
  bool unified = false;                  // cgroup v2
};

/// Source: proc(5), /proc/<pid>/mountinfo. Unknown and cut lines are passed over.
std::vector<CgroupMount> parse_mountinfo(std::string_view text);

/// Paths of one process. Key: a v1 controller's name, or "" for the unified hierarchy.
/// Source: cgroups(7), /proc/<pid>/cgroup.
std::map<std::string, std::string> parse_proc_cgroup(std::string_view text);

/// All mounts of this host.
class CgroupTree {
 public:
  /// `proc` and the mount points are real ones, or those of a test's own tree.
  static CgroupTree read(const std::string& proc = "/proc");
  explicit CgroupTree(std::vector<CgroupMount> mounts, std::string proc = "/proc")
      : mounts_(std::move(mounts)), proc_(std::move(proc)) {}

  /// Directory of `pid` for a v1 controller, or for "" in the unified hierarchy.
  /// nullopt: not mounted here, the process is gone, or it sits outside of what is mounted.
  std::optional<std::string> directory(int pid, const std::string& controller) const;
  /// Path of `pid` inside the hierarchy ("/slurm_n1/uid_0/job_3/step_0"), as the kernel says it.
  std::optional<std::string> path(int pid, const std::string& controller) const;
  /// All paths of `pid`, read once; empty when the process is gone. Cost: 15 µs.
  std::map<std::string, std::string> paths(int pid) const;
  /// Directory of a path that paths() gave.
  std::optional<std::string> directory_of(const std::string& controller,
                                          const std::string& path) const;
  const CgroupMount* mount_of(const std::string& controller) const;
  const std::vector<CgroupMount>& mounts() const { return mounts_; }
  const std::string& proc() const { return proc_; }

 private:
  std::vector<CgroupMount> mounts_;
  std::string proc_;
};

/// True if `inner` lies strictly below `outer` ("/a" holds "/a/b", not "/ab"; "/" holds all).
bool is_below(std::string_view inner, std::string_view outer);

}  // namespace sphase
