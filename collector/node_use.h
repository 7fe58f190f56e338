// What the nodes of a job did in an interval, from the samples of the steps on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collector/timeline.h"

namespace sphase {

/// A node while it is allocated with constant CPUs and memory.
struct NodeSpan {
  std::string node;
  std::int64_t begin_ns = 0, end_ns = 0;
  Maybe cpus, memory_bytes;
};

/// CPUs and memory of every node in every allocation; where the records do not know them, from the
/// runs on the node, and what is left of the allocation's total shared evenly by the other nodes.
std::vector<NodeSpan> node_spans(const Timeline& timeline);

/// Most memory that intervals held at one time, if each holds its peak from begin to end.
struct MemoryPiece {
  std::int64_t begin_ns, end_ns, peak_bytes;
};
Maybe stacked_peak(std::vector<MemoryPiece> pieces);

/// Answers questions about the nodes of one job. Keeps a reference to the timeline.
class NodeUsage {
 public:
  explicit NodeUsage(const Timeline& timeline);

  /// Every node allocated in the interval, with all steps on it. A step that lies inside is taken
  /// by its own first and last samples; one that crosses an edge is read at the edge.
  std::vector<NodeUse> of_job(std::int64_t begin_ns, std::int64_t end_ns) const;

  /// One run in the interval, measured against the CPUs and memory of the step. CPU and I/O are
  /// from the samples.
  NodeUse of_run(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  /// A step that fewer nodes told about than it had.
  struct Incomplete {
    std::int64_t begin_ns, end_ns;
    std::vector<std::string> known;  // sorted
  };

  NodeUse use_node(const std::string& node, const std::vector<const NodeSpan*>& spans,
                   std::int64_t begin_ns, std::int64_t end_ns) const;
  void add_runs(NodeUse& use, std::int64_t begin_ns, std::int64_t end_ns) const;
  void add_run(NodeUse& use, const Run& run, std::int64_t begin_ns, std::int64_t end_ns) const;
  bool silent(const std::string& node, std::int64_t begin_ns, std::int64_t end_ns) const;
  void find_incomplete();

  const Timeline& timeline_;
  std::vector<NodeSpan> spans_;
  std::map<std::string, std::vector<const NodeSpan*>> spans_of_;
  std::map<std::string, std::vector<const Run*>> runs_of_;
  std::vector<Incomplete> incomplete_;
};

/// Adds the I/O of a run in an interval to `use`.
void read_io(NodeUse& use, const Run& run, std::int64_t begin_ns, std::int64_t end_ns);

/// Most memory of a run in an interval: its samples, and the marks its phases left.
Maybe run_memory_peak(const Run& run, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace sphase
