// The recorder as a guest on the node: out of the job's way, and soon gone.
#pragma once

#include <string>

#include "spank/recorder/sources/cgroup_paths.h"

namespace sphase {

/// Signals to their defaults and unblocked (slurmstepd blocks SIGTERM, and children inherit that);
/// as many descriptors as the hard limit allows; files that nobody else can read.
void reset_process();

/// Leaves every cgroup of the job that we were started in. We sit in the job's group where
/// slurmstepd does and the task does not sit with us (then slurmd has no group of its own there).
/// Returns "" or why we could not; then our memory may be charged to the job.
/// Writes only to cgroup.procs of a hierarchy's root, never to a file of Slurm's groups.
std::string leave_job_groups(const CgroupTree& tree, int stepd_pid, int task_pid);

/// Real-time priority 1 for the calling thread: a marker is then read within 0.1 ms (p99) on a busy
/// node instead of 4 ms. Bounded: a thread that runs 200 ms on end falls back to normal priority.
/// Returns "" or why it is not allowed here.
std::string become_realtime();

/// SIGALRM ends the process after so many seconds, whatever it hangs in.
void end_within(unsigned seconds);

}  // namespace sphase
