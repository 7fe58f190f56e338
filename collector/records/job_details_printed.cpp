// Where libslurm prints jobs (22.05): from the text of `scontrol -d show job`, the only public way
// to some facts.
#include <cstdio>
#include <cstdlib>

#include "collector/records/job_details.h"
#include "collector/records/records_words.h"

namespace sphase {
namespace {

std::string printed(slurm_job_info_t& job) {
  char* bytes = nullptr;
  std::size_t size = 0;
  FILE* file = ::open_memstream(&bytes, &size);
  if (file == nullptr) return "";
  slurm_print_job_info(file, &job, 0);
  std::fclose(file);
  std::string text(bytes, size);
  std::free(bytes);  // NOLINT: open_memstream(3)
  return text;
}

}  // namespace

JobDetails job_details(slurm_job_info_t& job) {
  const std::string shown = printed(job);
  return {parse_reason(shown), parse_node_memory(shown)};
}

Maybe cpus_on_node(const slurm_job_info_t& job, const std::string& node) {
  if (job.job_resrcs == nullptr) return std::nullopt;
  const int cpus = slurm_job_cpus_allocated_on_node(job.job_resrcs, node.c_str());
  return cpus > 0 ? Maybe(cpus) : std::nullopt;
}

}  // namespace sphase
