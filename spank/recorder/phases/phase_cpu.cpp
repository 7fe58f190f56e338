#include <algorithm>

#include "spank/recorder/phases/phase_row.h"

namespace sphase {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return b > 0 ? (a + b - 1) / b : 1; }

}  // namespace

std::optional<CpuTime> cpu_between(const Edge& begin, const Edge& end) {
  const std::int64_t wall_ns = std::max<std::int64_t>(1, end.time_ns - begin.time_ns);
  std::optional<CpuTime> process;
  std::optional<CpuTime> task;

  if (begin.process_cpu_ns && end.process_cpu_ns && begin.client == end.client) {
    const std::int64_t used =
        std::max<std::int64_t>(0, *end.process_cpu_ns - *begin.process_cpu_ns);
    // The marking thread's own time is exact; each other busy thread is a tick behind.
    const std::int64_t others = std::max<std::int64_t>(0, ceil_div(used, wall_ns) - 1);
    process = CpuTime{
        used,
        begin.process_uncertainty_ns + end.process_uncertainty_ns + others * end.task_resolution_ns,
        "process"};
  }
  if (begin.task_cpu_ns && end.task_cpu_ns) {
    const std::int64_t used = std::max<std::int64_t>(0, *end.task_cpu_ns - *begin.task_cpu_ns);
    const std::int64_t busy = std::max<std::int64_t>(1, ceil_div(used, wall_ns));
    task =
        CpuTime{used, busy * (end.task_resolution_ns + begin.lag_ns + end.lag_ns), end.task_source};
  }
  if (!process) return task;
  if (!task) return process;
  // Further apart than the group's resolution (and 2 %): other processes of the task worked too.
  const std::int64_t apart = task->time_ns - process->time_ns;
  const std::int64_t allowed = task->resolution_ns + end.task_resolution_ns + task->time_ns / 50;
  return apart > allowed ? task : process;
}

}  // namespace sphase
