// Table open_job: which jobs a look asks for, and when the last word about one has come.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/records/records.h"

namespace sphase {

/// Rows of slurmdbd's that ended this long before the first that is known of a job may be earlier
/// intervals of it.
inline constexpr std::int64_t kBeforeS = 7 * 86400;

using JobKey = std::pair<std::string, std::int64_t>;  // cluster, job id

struct OpenJobs {
  RecordQuery query;
  std::set<JobKey> jobs;
  std::vector<Witness> witnesses;  // what the store knows of their runs and notices
};

/// Jobs to be asked for. `now_s`: leaves out those that no daemon knew the last time, until their
/// time has come; nullopt: all of them. Cost: what is open, and its runs.
Result<OpenJobs> open_jobs(Database& db, Maybe now_s);

struct Answers {
  bool slurmctld = false, slurmdbd = false;  // this daemon answered
  std::set<JobKey> unfinished;  // jobs that slurmdbd has with an interval that has not ended
};

/// Closes those of which the last word is known: ended for ten minutes, slurmdbd has answered since
/// and has its end too (a day, where slurmdbd does not know the job). Those that no daemon knows
/// are asked for later and later, and given up after twenty times (some ten days).
Status settle_jobs(Database& db, const OpenJobs& asked, const Answers& answers, std::int64_t now_s);

/// True if the store has the end of this job and it is not open: nothing about it is news.
Result<bool> is_settled(Database& db, const JobFacts& job);

}  // namespace sphase
