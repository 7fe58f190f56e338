// Who may see which job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// Somebody who is logged in.
struct Viewer {
  std::uint32_t uid = 0;
  bool is_operator = false;  // sees the jobs of all
};

/// Root, and whom the site trusts.
Viewer viewer_of(std::uint32_t uid, const std::vector<std::uint32_t>& operators);

/// One's own; a job of which nobody knows the owner is for operators.
bool may_see(const Viewer& viewer, const JobFacts& job);

struct Seen {
  std::vector<Timeline> starts;
  std::string problem;  // of a job that is the viewer's: why nothing of it can be shown
};

/// The starts of a job that the viewer may see. nullopt: there is no such job, or it is another
/// user's: nothing in the answer tells which, and another user's job is not even loaded, so that
/// the time it takes does not tell either. Errors: the database cannot be read.
Result<std::optional<Seen>> seen_by(const Viewer& viewer, Database& db, const std::string& job);
Result<std::optional<Seen>> seen_by(const Viewer& viewer, Database& db,
                                    const JobSelector& selector);

}  // namespace sphase
