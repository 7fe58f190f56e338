// Which sources a task gets, and why not better ones.
#include "spank/recorder/sources/counter_source.h"
#include "spank/recorder/sources/proc_source.h"

namespace sphase {
namespace {

/// The task's own group for a controller; or why there is none.
struct OwnGroup {
  std::optional<std::string> directory;
  std::string reason;
};

using Paths = std::map<std::string, std::string>;

/// A group is the job's own if a process known to be outside of the job is not in it (or below).
OwnGroup own_group(const CgroupTree& tree, const Paths& task, const Paths& outside,
                   const std::string& controller) {
  const std::string name = controller.empty() ? "cgroup v2" : "cgroup v1 " + controller;
  if (tree.mount_of(controller) == nullptr) return {std::nullopt, name + " is not mounted"};
  const auto inside = task.find(controller);
  if (inside == task.end()) return {std::nullopt, "the task has no " + name + " group"};
  const auto other = outside.find(controller);
  const bool shared = other != outside.end() &&
                      (other->second == inside->second || is_below(other->second, inside->second));
  if (inside->second == "/" || shared) {
    return {std::nullopt, "Slurm keeps no " + name + " group for the task"};
  }
  auto directory = tree.directory_of(controller, inside->second);
  if (!directory) return {std::nullopt, name + " of the task is outside of what is mounted here"};
  return {std::move(directory), ""};
}

template <typename Source, typename V1, typename V2>
std::unique_ptr<Source> open_group(const OwnGroup& v2, const OwnGroup& v1, V1 open_v1, V2 open_v2,
                                   std::string& key, std::string& reason) {
  if (v2.directory) {
    if (auto source = open_v2(*v2.directory)) {
      key = *v2.directory;
      return source;
    }
    reason = "cgroup v2 has no such controller for the task";
  }
  if (v1.directory) {
    if (auto source = open_v1(*v1.directory)) {
      key = *v1.directory;
      reason.clear();
      return source;
    }
    reason = "cannot read " + *v1.directory;
    return nullptr;
  }
  reason = v1.reason + (reason.empty() ? "; " + v2.reason : "; " + reason);
  return nullptr;
}

}  // namespace

TaskSources open_task_sources(const CgroupTree& tree, int pid, int outside_pid) {
  TaskSources sources;
  const Paths task = tree.paths(pid);
  const Paths outside = tree.paths(outside_pid);
  const auto own = [&](const std::string& controller) {
    return own_group(tree, task, outside, controller);
  };
  const OwnGroup v2 = own("");
  sources.cpu = open_group<CpuSource>(v2, own("cpuacct"), open_cpuacct_v1, open_cpu_v2,
                                      sources.cpu_key, sources.cpu_reason);
  sources.memory = open_group<MemorySource>(v2, own("memory"), open_memory_v1, open_memory_v2,
                                            sources.memory_key, sources.memory_reason);
  for (const char* controller : {"", "cpuacct", "memory", "freezer", "pids"}) {
    if (sources.processes) break;
    const OwnGroup group = own(controller);
    if (!group.directory) continue;
    sources.processes = open_cgroup_procs(*group.directory, controller[0] == '\0');
  }
  const std::string tree_key = "process " + std::to_string(pid);
  if (!sources.processes) sources.processes = std::make_unique<ProcTree>(tree.proc(), pid);
  if (!sources.cpu) {
    sources.cpu = std::make_unique<ProcCpu>(tree.proc(), pid);
    sources.cpu_key = tree_key;
  }
  if (!sources.memory) {
    sources.memory = std::make_unique<ProcMemory>(tree.proc(), pid);
    sources.memory_key = tree_key;
  }
  return sources;
}

}  // namespace sphase
