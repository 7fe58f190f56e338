// What slurmctld sends about a job in a form that Slurm's public headers keep closed.
//
// In 22.05 libslurm shows it: slurm_print_job_info and slurm_job_cpus_allocated_on_node. By 24.11
// both had become scontrol's own; then CPUs and memory of each node are not known from here (a
// report takes what the recorders saw, or shares the total). CMake asks libslurm which it is:
// job_details_printed.cpp or job_details_closed.cpp.
#pragma once

#include <slurm/slurm.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

struct JobDetails {
  MaybeText reason;  // why it waits or failed, as scontrol says it: "Resources"
  /// Host list expression and B of each node; empty: not known.
  std::vector<std::pair<std::string, std::int64_t>> node_memory;
};

/// Cost where libslurm prints: one formatted `scontrol show job`, some 50 µs.
JobDetails job_details(slurm_job_info_t& job);

/// CPUs that the job has on one of its nodes. nullopt: not known.
Maybe cpus_on_node(const slurm_job_info_t& job, const std::string& node);

}  // namespace sphase
