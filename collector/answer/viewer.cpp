#include "collector/answer/viewer.h"

#include <algorithm>

#include "collector/timeline/timeline_load.h"

namespace sphase {
namespace {

/// True if some start of it is this user's. A job number is used again in the end, so that its
/// starts may be those of several.
Result<bool> is_of(Database& db, const JobNumber& job, std::uint32_t uid) {
  auto row = db.prepare(
      "SELECT 1 FROM job WHERE cluster = ?1 AND job_id = ?2 AND uid = ?3"
      " UNION SELECT 1 FROM run WHERE cluster = ?1 AND job_id = ?2 AND uid = ?3");
  if (!row) return Error{row.error()};
  const bool found = row->bind(1, job.cluster).bind(2, job.job_id).bind(3, uid).step();
  if (!found && !row->status()) return Error{row->status().error()};
  return found;
}

Result<bool> all_are_of(Database& db, const std::vector<JobNumber>& jobs, std::uint32_t uid) {
  for (const auto& job : jobs) {
    auto own = is_of(db, job, uid);
    if (!own || !*own) return own;
  }
  return true;
}

}  // namespace

Viewer viewer_of(std::uint32_t uid, const std::vector<std::uint32_t>& operators) {
  const bool named = std::find(operators.begin(), operators.end(), uid) != operators.end();
  return {uid, uid == 0 || named};
}

bool may_see(const Viewer& viewer, const JobFacts& job) {
  return viewer.is_operator || job.uid == static_cast<std::int64_t>(viewer.uid);
}

Result<std::optional<Seen>> seen_by(const Viewer& viewer, Database& db, const std::string& job) {
  const auto selector = parse_job_selector(job);
  return selector ? seen_by(viewer, db, *selector) : std::optional<Seen>();
}

Result<std::optional<Seen>> seen_by(const Viewer& viewer, Database& db,
                                    const JobSelector& selector) {
  const std::optional<Seen> kNothing;
  const auto numbers = find_jobs(db, selector);
  if (!numbers) return Error{numbers.error()};
  if (numbers->empty()) return kNothing;
  if (!viewer.is_operator) {
    auto own = all_are_of(db, *numbers, viewer.uid);
    if (!own) return Error{own.error()};
    if (!*own) return kNothing;
  }
  Seen seen;
  auto starts = load_timelines(db, selector);
  if (!starts) {
    seen.problem = starts.error();
    return std::optional(seen);
  }
  for (auto& start : *starts) {
    if (may_see(viewer, start.job)) seen.starts.push_back(std::move(start));
  }
  return seen.starts.empty() ? kNothing : std::optional(std::move(seen));
}

}  // namespace sphase
