// The list of jobs that a viewer looks through: newest first, a bounded number.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/answer/viewer.h"

namespace sphase {

inline constexpr std::size_t kMostJobs = 200;

struct FoundJob {
  JobFacts job;  // its ids, uid, user, name, partition, state, start_s and end_s
};

/// Words in small letters, 8 at most.
std::vector<std::string> search_words(std::string_view text);

/// Starts of jobs that the viewer may see and in which every word is found: as the job's number
/// ("123", "123_4"), its user's number, or in its name, user or state. Newest first, `most` at
/// most. Cost: 0.2 to 0.3 s with 100 000 jobs of ten runs each.
Result<std::vector<FoundJob>> search_jobs(Database& db, const Viewer& viewer, std::string_view text,
                                          std::size_t most);

/// {"jobs": [{"id": "123_4", …}], "uid": …, "all_users": …}; null = not known.
std::string jobs_json(const std::vector<FoundJob>& jobs, const Viewer& viewer);

}  // namespace sphase
