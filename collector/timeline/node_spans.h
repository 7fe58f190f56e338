// Which nodes a job held when, with how many CPUs and how much memory.
#pragma once

#include <string>
#include <vector>

#include "collector/timeline/intervals.h"
#include "collector/timeline/timeline.h"

namespace sphase {

/// A node while it is allocated with constant CPUs and memory.
struct NodeSpan {
  std::string node;
  std::int64_t begin_ns = 0, end_ns = 0;
  Maybe cpus, memory_bytes;
};

/// Every node of every allocation. What the records do not know comes from the runs on the node,
/// and what is left of the allocation's total is shared evenly by the other nodes. Records have
/// whole seconds; where a step saw more of it, its time is taken. While the job is suspended it
/// holds no node, as in Slurm's own accounting: Slurm gives the CPUs to others.
std::vector<NodeSpan> node_spans(const Timeline& timeline);

/// When the job was suspended, as far as a look saw it. Sorted, without overlap.
std::vector<Interval> suspended_times(const Timeline& timeline);

}  // namespace sphase
