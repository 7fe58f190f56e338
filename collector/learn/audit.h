// The line that job_submit/phase_resize leaves in a job's AdminComment: what was asked for before
// anybody changed it, what was changed, and why the rest was not.
//
//   sphase/1 profile=1001/~3f2a90cc12ab34ef mode=apply from=job advice=found runs=14
//   made=1764536000 asked=nodes:4,tasks:16,cpus:-,memory:8192,time:60 set=nodes:1,memory:5120
//   would=- left=time:user-set
//
// Words separated by blanks, in any order after the first; '-' = not set. AdminComment belongs to
// the administrator: other text may stand around the line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/timeline/sample_series.h"

namespace sphase {

/// Sizes of a job as slurmctld keeps them; nullopt = not set, or not in this list.
struct AuditSizes {
  Maybe nodes, tasks;
  Maybe cpus;        // per task
  Maybe memory_mib;  // per node, or per CPU
  bool memory_per_cpu = false;
  Maybe time_min;

  bool any() const { return nodes || tasks || cpus || memory_mib || time_min; }
};

/// A field ("nodes", "memory", …, or "job" for all of them) that was left as it was.
struct AuditLeft {
  std::string field, reason;
};

struct Audit {
  std::string profile;             // key, common/profile_key.h; "" = none that can be right
  std::string mode, from, advice;  // words of the plugin; "" = not told
  Maybe runs, made_s;              // of the advice
  AuditSizes asked;                // before anybody changed it
  AuditSizes set;                  // what was changed, to these values
  AuditSizes would;                // what mode=advise would have changed
  std::vector<AuditLeft> left;     // at most 16
};

/// The last such line in `comment`; nullopt if there is none. Never fails: words that are not known
/// are skipped, values that cannot be are as if they were not there. Looks at 4 KiB of the line.
std::optional<Audit> parse_audit(std::string_view comment);

}  // namespace sphase
