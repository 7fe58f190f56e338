#include "spank/recorder/sources/sampler.h"

#include <algorithm>
#include <string_view>

#include "common/clock.h"
#include "spank/recorder/file.h"
#include "spank/recorder/sources/proc_source.h"

namespace sphase {
namespace {

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& part) {
  if (part) sum = sum.value_or(0) + *part;
}

bool is_cgroup(const char* tier) { return std::string_view(tier).starts_with("cgroup"); }

}  // namespace

void Sampler::attach(std::uint32_t task, int pid, int outside_pid) {
  if (tasks_.empty()) io_.rebase();
  open_peak(pid, outside_pid);
  TaskSources sources = open_task_sources(tree_, pid, outside_pid);
  if (cpu_tier_.source.empty()) cpu_tier_ = {sources.cpu->tier(), sources.cpu_reason};
  if (memory_tier_.source.empty()) {
    memory_tier_ = {sources.memory->tier(), sources.memory_reason};
  }
  CpuGroup& cpu = cpu_[sources.cpu_key];
  if (!cpu.source) cpu.source = std::move(sources.cpu);
  ++cpu.tasks;
  MemoryGroup& memory = memory_[sources.memory_key];
  if (!memory.source) memory.source = std::move(sources.memory);
  tasks_[task] = Task{pid, sources.cpu_key, std::move(sources.processes)};
}

/// One mark for all tasks: the sum of their own peaks would be more than they ever had together.
void Sampler::open_peak(int pid, int outside_pid) {
  if (!tasks_.empty()) {
    const auto path = peak_ ? tree_.path(pid, "") : std::nullopt;
    if (!path || !holds(peak_group_, *path)) peak_.reset();
    return;
  }
  const auto group = group_of_tasks(tree_, pid, outside_pid, stepd_pid_);
  const auto directory = group ? tree_.directory_of("", *group) : std::nullopt;
  if (!directory) return;
  peak_group_ = *group;
  peak_ = PeakSource::open(*directory);
}

std::optional<std::int64_t> Sampler::take_peak() { return peak_ ? peak_->take() : std::nullopt; }

void Sampler::detach(std::uint32_t task) { (void)task_cpu(task); }

std::optional<Sampler::TaskCpu> Sampler::task_cpu(std::uint32_t task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  CpuGroup& group = cpu_[found->second.cpu_key];
  if (const auto now = group.source->cpu_time_ns()) {
    group.last_ns = std::max(group.last_ns, *now);
    group.known = true;
  }
  if (!group.known || group.tasks != 1) return std::nullopt;
  return TaskCpu{group.last_ns, group.source->resolution_ns(),
                 is_cgroup(group.source->tier()) ? "cgroup" : "proc"};
}

/// Listing a group's processes costs as much as all the rest, so edges that follow each other
/// closely share one list; a process born in between shows at the next.
const std::vector<int>& Sampler::pids(bool anew) {
  const std::int64_t now = monotonic_ns();
  if (!anew && now - pids_time_ns_ < kListAgeNs) return pids_;
  pids_time_ns_ = now;
  std::vector<int>& all = pids_;
  all.clear();
  for (auto& [id, task] : tasks_) {
    const std::vector<int> some = task.processes->pids();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Memory Sampler::memory() {
  Memory sum;
  for (auto& [key, group] : memory_) {
    const auto now = group.source->memory();
    if (!now) {
      if (group.last_peak > 0) add(sum.peak, group.last_peak);
      continue;
    }
    add(sum.current, now->current);
    add(sum.anon, now->anon);
    add(sum.file, now->file);
    add(sum.shmem, now->shmem);
    add(sum.kernel, now->kernel);
    add(sum.peak, now->peak);
    group.last_peak = now->peak.value_or(0);
  }
  return sum;
}

std::optional<std::int64_t> Sampler::current_bytes() {
  std::optional<std::int64_t> sum;
  for (auto& [key, group] : memory_) add(sum, group.source->current_bytes());
  return sum;
}

SampleRow Sampler::sample(const char* kind) {
  SampleRow row;
  row.kind = kind;
  for (auto& [key, group] : cpu_) {
    if (const auto now = group.source->cpu_time_ns()) {
      group.last_ns = std::max(group.last_ns, *now);
      group.known = true;
    }
    if (group.known) add(row.cpu_time_ns, group.last_ns);
  }
  row.memory = memory();
  const std::vector<int>& alive = pids(std::string_view(kind) != "edge");
  row.processes = static_cast<std::int64_t>(alive.size());
  row.io = io_.total(alive);
  row.time_ns = epoch_ns();
  return row;
}

std::optional<std::uint32_t> Sampler::task_by_ancestry(int pid) const {
  constexpr int kMostGenerations = 64;
  for (int generation = 0; generation < kMostGenerations && pid > 1; ++generation) {
    for (const auto& [id, task] : tasks_) {
      if (task.pid == pid) return id;
    }
    const auto text = read_file(tree_.proc() + "/" + std::to_string(pid) + "/stat");
    const auto stat = text ? parse_proc_stat(*text) : std::nullopt;
    if (!stat) break;
    pid = stat->ppid;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Sampler::task_of_pid(int pid) {
  if (const auto task = task_by_ancestry(pid)) return task;
  if (tasks_.size() == 1) return tasks_.begin()->first;
  for (auto& entry : tasks_) {
    const std::uint32_t id = entry.first;
    const std::vector<int> members = entry.second.processes->pids();
    // A group that several tasks share says nothing about which one it is.
    const bool shared = std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& other) {
      return other.first != id && std::count(members.begin(), members.end(), other.second.pid) > 0;
    });
    if (!shared && std::count(members.begin(), members.end(), pid) > 0) return id;
  }
  return std::nullopt;
}

}  // namespace sphase
