// Why there is advice, or none yet, as a sentence.
#pragma once

#include <string>
#include <vector>

#include "collector/learn/advise.h"

namespace sphase {

/// Runs of one profile by what can be learned from them.
struct RunCounts {
  std::int64_t good = 0, killed = 0, timeouts = 0;  // killed: for memory
  std::int64_t failed = 0;                          // otherwise, or cancelled: they teach no time
};

/// "1 run", "3 runs"
std::string counted(std::int64_t number, const std::string& noun);

/// E.g. "14 runs; 1 of 4 nodes was used". `job`: the whole job's observations, oldest first.
std::string reason_of(const ProfileAdvice& advice, const RunCounts& counts,
                      const std::vector<Observation>& job, const SiteConfig& config);

}  // namespace sphase
