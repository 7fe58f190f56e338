// What is known, a line per start of a job: for `sphase jobs`.
#pragma once

#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

struct JobLine {
  JobFacts job;
  Maybe begin_ns, end_ns;
  std::int64_t nodes = 0;   // that told something
  std::int64_t steps = 0;   // recorded
  std::int64_t phases = 0;  // different paths
};

/// Every start of every job, by time. `user`: a name or a uid, "" = all.
Result<std::vector<JobLine>> list_jobs(Database& db, const std::string& user);

}  // namespace sphase
