// A node's /proc and cgroup mounts in a temporary folder, filled as a test likes.
#pragma once

#include <string>

#include "spank/recorder/sources/cgroup_paths.h"
#include "tests/common/tools.h"

namespace sphase::testing {

class FakeNode {
 public:
  enum class Kind { kV1, kV2, kNone };
  explicit FakeNode(Kind kind = Kind::kV1) : kind_(kind) {
    std::string mounts;
    if (kind == Kind::kV1) {
      for (const char* controller : {"cpuacct", "memory", "freezer"}) {
        mounts +=
            "1 1 0:1 / " + group_root(controller) + " rw - cgroup cgroup rw," + controller + "\n";
        std::filesystem::create_directories(group_root(controller));
      }
    } else if (kind == Kind::kV2) {
      mounts = "1 1 0:1 / " + group_root("") + " rw - cgroup2 cgroup2 rw\n";
    }
    folder_.write("proc/self/mountinfo", mounts);
  }

  std::string proc() const { return folder_ / "proc"; }
  CgroupTree tree() const { return CgroupTree::read(proc()); }
  const TempFolder& folder() const { return folder_; }
  std::string group_root(const std::string& controller) const {
    return folder_ / ("cg/" + (kind_ == Kind::kV2 ? std::string("unified") : controller));
  }

  /// A process that sits in `group` of every hierarchy.
  void process(int pid, const std::string& group, int ppid = 1) const {
    const std::string at = "proc/" + std::to_string(pid);
    std::string paths;
    if (kind_ == Kind::kV1) {
      paths = "3:cpuacct:" + group + "\n2:memory:" + group + "\n1:freezer:" + group + "\n";
    } else if (kind_ == Kind::kV2) {
      paths = "0::" + group + "\n";
    }
    folder_.write(at + "/cgroup", paths);
    stat(pid, ppid, 0, 0);
    folder_.write(at + "/statm", "100 50 20 1 0 40 0\n");
    io(pid, 0, 0);
    children(pid, "");
  }
  void stat(int pid, int ppid, int own_ticks, int children_ticks, int start = 77) const {
    folder_.write("proc/" + std::to_string(pid) + "/stat",
                  std::to_string(pid) + " (a) b) S " + std::to_string(ppid) +
                      " 1 1 0 -1 4194304 100 0 0 0 " + std::to_string(own_ticks) + " 0 " +
                      std::to_string(children_ticks) + " 0 20 0 1 0 " + std::to_string(start) +
                      " 1000 100 18446744073709551615\n");
  }
  void children(int pid, const std::string& pids) const {
    const std::string number = std::to_string(pid);
    folder_.write("proc/" + number + "/task/" + number + "/children", pids);
  }
  void io(int pid, long read, long write) const {
    folder_.write("proc/" + std::to_string(pid) + "/io",
                  "rchar: " + std::to_string(read * 10) + "\nwchar: " + std::to_string(write * 10) +
                      "\nsyscr: 1\nsyscw: 1\nread_bytes: " + std::to_string(read) +
                      "\nwrite_bytes: " + std::to_string(write) + "\ncancelled_write_bytes: 0\n");
  }
  void end(int pid) const { std::filesystem::remove_all(proc() + "/" + std::to_string(pid)); }

  /// The files of a group; `kind` decides which.
  void group(const std::string& group, long cpu_ns, long memory, const std::string& pids) const {
    const std::string number = std::to_string(memory) + "\n";
    if (kind_ == Kind::kV1) {
      folder_.write("cg/cpuacct" + group + "/cpuacct.usage", std::to_string(cpu_ns) + "\n");
      folder_.write("cg/cpuacct" + group + "/cgroup.procs", pids);
      folder_.write("cg/memory" + group + "/memory.usage_in_bytes", number);
      folder_.write("cg/memory" + group + "/memory.max_usage_in_bytes", number);
      folder_.write("cg/memory" + group + "/memory.stat",
                    "total_cache 0\ntotal_rss " + number + "total_shmem 0\n");
      folder_.write("cg/memory" + group + "/cgroup.procs", pids);
    } else {
      folder_.write("cg/unified" + group + "/cpu.stat",
                    "usage_usec " + std::to_string(cpu_ns / 1000) + "\n");
      folder_.write("cg/unified" + group + "/memory.current", number);
      folder_.write("cg/unified" + group + "/memory.stat", "anon " + number + "file 0\nshmem 0\n");
      folder_.write("cg/unified" + group + "/cgroup.procs", pids);
    }
  }
  void remove_group(const std::string& group) const {
    for (const char* controller : {"cpuacct", "memory", "freezer", "unified"}) {
      std::filesystem::remove_all(folder_ / ("cg/" + std::string(controller) + group));
    }
  }

 private:
  Kind kind_;
  TempFolder folder_;
};

}  // namespace sphase::testing
