// Where libslurm prints no jobs (24.11): what a job has on each node stays inside job_resrcs, which
// is opaque.
#include <algorithm>

#include "collector/records/job_details.h"

#ifdef SPHASE_SLURM_NAMES_REASONS
/// libslurm exports it under this name, no public header declares it. Static text.
/// Source: src/common/job_state_reason.h of 24.11.
extern "C" const char* slurm_job_state_reason_string(job_state_reason reason);
#endif

namespace sphase {
namespace {

/// Like scontrol: a description goes before the reason's name, its blanks as underscores.
MaybeText reason_of(const slurm_job_info_t& job) {
  if (job.state_desc != nullptr && *job.state_desc != '\0') {
    std::string words = job.state_desc;
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n'; }, '_');
    return words;
  }
#ifdef SPHASE_SLURM_NAMES_REASONS
  const char* name = slurm_job_state_reason_string(static_cast<job_state_reason>(job.state_reason));
  if (name != nullptr) return name;
#endif
  return std::nullopt;
}

}  // namespace

JobDetails job_details(slurm_job_info_t& job) { return {reason_of(job), {}}; }

Maybe cpus_on_node(const slurm_job_info_t&, const std::string&) { return std::nullopt; }

}  // namespace sphase
