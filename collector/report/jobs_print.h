// Printers of the list of jobs.
#pragma once

#include <string>
#include <vector>

#include "collector/timeline/job_list.h"

namespace sphase {

/// {"jobs": [{"cluster": …, "job_id": …, …}]}; null = not known.
std::string jobs_json(const std::vector<JobLine>& lines);

/// For people: a line per start.
std::string jobs_text(const std::vector<JobLine>& lines);

}  // namespace sphase
