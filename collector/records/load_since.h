// What slurm_load_jobs need not send again. Pure: the time is slurmctld's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sphase {

/// Remembers up to when slurmctld has answered, and for whom. slurmctld answers "no change" to that
/// time until any job changes; a question for a job that was not asked for then needs all of it.
class LoadSince {
 public:
  /// The update_time to send: 0 = all.
  std::int64_t time_for(const std::vector<std::int64_t>& job_ids, bool every_job) const {
    const bool same = every_job ? every_job_
                                : every_job_ || std::includes(asked_.begin(), asked_.end(),
                                                              job_ids.begin(), job_ids.end());
    return same ? last_update_s_ : 0;
  }
  /// slurmctld has sent everything as of `last_update_s`. `job_ids` are sorted.
  void answered(std::int64_t last_update_s, const std::vector<std::int64_t>& job_ids,
                bool every_job) {
    last_update_s_ = last_update_s;
    asked_ = job_ids;
    every_job_ = every_job;
  }
  /// What it sent is no longer to be relied on: another slurmctld, or a look that failed.
  void forget() { *this = {}; }

 private:
  std::int64_t last_update_s_ = 0;
  std::vector<std::int64_t> asked_;
  bool every_job_ = false;
};

}  // namespace sphase
