// Observations in cluster.db: tables observed_job, observation, profile_*, partition_limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collector/learn/advise.h"
#include "collector/learn/observation.h"
#include "collector/timeline/timeline_load.h"
#include "common/sqlite_db.h"

namespace sphase {

/// Learning reads this many runs of a profile, the last ones.
inline constexpr std::int64_t kRunsLearned = 200;

/// Writes one; what was observed of the same start before is replaced. Marks its profile as
/// touched. `db` of open_cluster: rows of `observation` go by their foreign key.
Status save_observed(Database& db, const ObservedJob& job, std::int64_t now_ns);

/// Removes what was observed of every start of this number, and marks the profiles as touched.
Status clear_observed(Database& db, const JobNumber& job);

/// The last `most` runs of a profile, oldest first, but none that ended before it was forgotten.
Result<std::vector<ObservedJob>> load_observed(Database& db, const std::string& profile,
                                               std::int64_t most = kRunsLearned);

/// What is known about one profile, of runs that are not forgotten.
struct ProfileLine {
  std::string profile;          // key
  Maybe uid;                    // nullopt: not a key of ours
  std::string name, partition;  // of its last run
  std::int64_t runs = 0;
  std::int64_t last_end_s = 0;
};

/// Every profile that has runs, last seen first. Reads all of observed_job: for people.
Result<std::vector<ProfileLine>> list_profiles(Database& db);

/// From now on runs that ended before `now_ns` are not learned from. The next `learn` drops the
/// advice.
Status forget_profile(Database& db, const std::string& profile, std::int64_t now_ns);

/// Limits of a partition as last seen; all 0 where it is not known. Of several ("a,b") those that
/// fit each of them.
Result<PartitionLimits> load_partition_limits(Database& db, const std::string& cluster,
                                              const std::string& partition);

/// Numbers with news whose last start has ended, at most `most`. Those that still run, or of which
/// a run without a record was heard within five minutes, stay in the queue. Cost: the queue.
Result<std::vector<JobNumber>> jobs_to_learn(Database& db, std::int64_t now_ns, std::int64_t most);

/// Takes a number out of the queue.
Status forget_news(Database& db, const JobNumber& job);

/// Profiles whose advice is to be made anew.
Result<std::vector<std::string>> touched_profiles(Database& db);
/// Every profile with observations, forgotten ones too. Cost: the number of observed jobs.
Result<std::vector<std::string>> all_profiles(Database& db);
Status clear_touched(Database& db, const std::vector<std::string>& profiles);

}  // namespace sphase
