// What one run says about one phase at one size. Learning reads nothing but these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

enum ObservationFlag : std::uint32_t {
  kObservedOom = 1,             // killed for memory: its peak is a lower bound
  kObservedTimeout = 2,         // reached its time limit: its duration is a lower bound
  kObservedFailed = 4,          // ended otherwise than well: its duration says nothing
  kObservedPartial = 8,         // some nodes told nothing: sums and peaks are lower bounds
  kObservedDefaultMemory = 32,  // whole job: the user had asked for no memory
  kObservedUnclosed = 16,       // the phase was never ended by its program
};

/// One phase (all its instances together) of one start of one job.
struct Observation {
  std::string path;                  // "" = the whole job; else a phase of the top level
  std::int64_t nodes = 0;            // allocated
  std::int64_t nodes_used = 0;       // those that did a share of the work; nodes without news count
  Maybe tasks;                       // that marked it; of the whole job: of its widest step
  double duration_s = 0;             // wall time in which it was open
  std::optional<double> cpu_time_s;  // over all nodes
  std::optional<double> cpus_busy;   // most CPUs busy on one node between two samples
  Maybe memory_peak_bytes;           // of the node that had most
  Maybe memory_limit_bytes;          // what a node was given
  std::uint32_t flags = 0;           // ObservationFlag
};

/// Everything that one start of one job taught.
struct ObservedJob {
  std::string profile;  // key, common/profile_key.h
  std::string cluster;
  std::int64_t job_id = 0, restart_count = 0, submit_s = 0;
  std::int64_t start_s = 0, end_s = 0;
  std::string name, partition;      // of the job
  Maybe nodes_asked;                // before anybody changed it
  std::vector<Observation> phases;  // the whole job first
};

/// Which profile a start belongs to.
struct ProfileOfStart {
  std::string profile;
  Maybe nodes_asked;
  bool memory_unset = false;  // as far as the audit line tells
};

/// From the audit line in AdminComment, unless it names another user's; else from profile=NAME of a
/// run. The number of nodes: what the audit line says, else what the scheduler's record does.
/// nullopt: neither names a profile.
std::optional<ProfileOfStart> profile_of(const Timeline& timeline);

/// What can be learned from a start that has ended; nullopt while it runs, or if it never began. A
/// node counts as used in a phase if it did at least 1/50 of the CPU time of the busiest node there
/// or held at least a fifth of the memory of the one that held most, so that a daemon's stray work
/// does not count. Phases are those of the top level: marked in the job script, and by the tasks of
/// its steps, where one path in several steps is one phase.
///
/// A job whose step was killed for memory counts as killed even if its script went on and ended
/// well: the step's own exit status and the kernel's high-water mark tell. One of whose tasks
/// crashed counts as failed.
///
/// A kill for memory and a reached time limit flag the whole job and the phases that nobody ended
/// (or in which the step was killed); one that had ended before is as good as any. A failure flags
/// all of them.
std::optional<ObservedJob> observe(const Timeline& timeline, const std::string& profile,
                                   const Maybe& nodes_asked);

}  // namespace sphase
