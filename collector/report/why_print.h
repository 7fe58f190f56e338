// Why a job has the sizes it has: what the job_submit plugin did with it, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/learn/audit.h"
#include "collector/learn/observation.h"
#include "collector/timeline/timeline.h"

namespace sphase {

struct WhyFacts {
  JobFacts job;
  std::optional<Audit> audit;     // nullopt: the plugin left no line
  std::vector<ObservedJob> runs;  // of the profile that ended before the advice was made
};

/// The sentence for a reason of AuditLeft; the word itself where it is not known.
std::string why_left(const std::string& reason);

/// What `scontrol --oneliner show job` tells: number, name, user, AdminComment. job_id 0: no job.
JobFacts facts_shown(const std::string& shown);

/// For the head of a report: what was changed or advised at submission; "" = nothing.
std::string submission_line(const JobFacts& job);

/// One sentence: why there is no audit line, as far as can be told.
std::string why_no_audit(const JobFacts& job);

/// For people: at most 100 columns. Needs an audit line.
std::string why_text(const WhyFacts& facts);

/// One object; null = not known or not set.
std::string why_json(const WhyFacts& facts);

}  // namespace sphase
