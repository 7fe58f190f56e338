// What the nodes of a job did in an interval, from the samples of the steps on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collector/timeline/intervals.h"
#include "collector/timeline/node_spans.h"
#include "collector/timeline/timeline.h"

namespace sphase {

/// Most memory that intervals held at one time, if each holds its peak from begin to end.
struct MemoryPiece {
  std::int64_t begin_ns, end_ns, peak_bytes;
};
Maybe stacked_peak(const std::vector<MemoryPiece>& pieces);

/// Answers questions about the nodes of one job. Keeps a reference to the timeline.
class NodeUsage {
 public:
  explicit NodeUsage(const Timeline& timeline);

  /// What a node wasted between two edges of what is told apart in the report.
  struct Piece {
    std::int64_t begin_ns, end_ns;
    std::optional<double> wasted;  // node-seconds; nullopt: not known
  };
  /// Of each node that was allocated, by time. Their waste sums up to that of the job.
  const std::map<std::string, std::vector<Piece>>& pieces() const { return pieces_of_; }

  /// Every node allocated in the interval, with all steps on it. A step that lies inside is taken
  /// by its own first and last samples; one that crosses an edge is read at the edge. Waste is
  /// that of the shortest intervals that the report tells apart (job phases, steps, phases of
  /// steps), summed: a peak of memory in one of them does not excuse the others.
  std::vector<NodeUse> of_job(std::int64_t begin_ns, std::int64_t end_ns) const;

  /// One run in the interval, measured against the CPUs and memory of the step. CPU, memory and
  /// I/O are from the samples; waste is left to the caller.
  NodeUse of_run(const Run& run, std::int64_t begin_ns, std::int64_t end_ns) const;

  /// What a run wasted of its step's share of the node, cut at its phases.
  std::optional<double> waste_of_run(const Run& run, std::int64_t begin_ns,
                                     std::int64_t end_ns) const;

 private:
  /// A step that fewer nodes told about than it had.
  struct Incomplete {
    std::int64_t begin_ns, end_ns;
    std::vector<std::string> known;  // sorted
  };

  NodeUse use_node(const std::string& node, const std::vector<const Run*>& runs,
                   std::int64_t begin_ns, std::int64_t end_ns, bool with_io) const;
  void add_runs(NodeUse& use, const std::vector<const Run*>& runs, std::int64_t begin_ns,
                std::int64_t end_ns, bool with_io) const;
  void add_waste(NodeUse& use, std::int64_t begin_ns, std::int64_t end_ns) const;
  std::vector<std::int64_t> cuts_of(const std::string& node) const;
  std::vector<Piece> cut_node(const std::string& node) const;
  bool silent(const std::string& node, std::int64_t begin_ns, std::int64_t end_ns) const;
  bool blind(const std::string& node, std::int64_t begin_ns, std::int64_t end_ns) const;
  std::int64_t running_ns(std::int64_t begin_ns, std::int64_t end_ns) const;
  void find_incomplete();
  void find_blind();

  const Timeline& timeline_;
  std::vector<NodeSpan> spans_;
  std::vector<Interval> suspended_;
  std::map<std::string, std::vector<const NodeSpan*>> spans_of_;
  std::map<std::string, std::vector<const Run*>> runs_of_;  // by begin
  std::vector<std::int64_t> job_cuts_;                      // edges of the job phases
  std::map<std::string, std::vector<Piece>> pieces_of_;     // by time
  std::vector<Incomplete> incomplete_;
  std::map<std::string, std::vector<Interval>> blind_;
};

/// Adds the I/O of a run in an interval to `use`.
void read_io(NodeUse& use, const Run& run, std::int64_t begin_ns, std::int64_t end_ns);

/// Edges of the outermost phases of a run's tasks, each merged over the tasks on its node.
std::vector<std::int64_t> phase_cuts(const Run& run);

/// Sorted, each once.
void sort_cuts(std::vector<std::int64_t>& cuts);

/// Most memory of a run in an interval: its samples, and the marks its phases left.
Maybe run_memory_peak(const Run& run, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace sphase
