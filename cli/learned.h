// What was learned about one profile, as the commands show it: computed from cluster.db, not read
// from the table that slurmctld has, so that it is never older than the last merge.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "collector/learn/advise.h"
#include "collector/learn/learn_store.h"
#include "common/advice.h"
#include "common/result.h"
#include "common/site_config.h"
#include "common/sqlite_db.h"

namespace sphase {

/// sphase.conf of this host; its defaults where there is none.
/// Errors: it cannot be read, or is wrong.
Result<SiteConfig> load_site_config();

/// `given`, else $SPHASE_DB, else what sphase.conf says.
std::string cluster_path(const std::string& given, const SiteConfig& config);

/// The key of the profile that a user means: a key ("1001/solver"), a name or "~HASH" of user
/// `uid`, a hash also by its first digits. Errors: none, or several, which are listed then.
Result<std::string> choose_profile(const std::vector<ProfileLine>& known, const std::string& text,
                                   uid_t uid);

struct Learned {
  std::string profile;  // key
  std::vector<ObservedJob> runs;
  ProfileAdvice advice;
  Advice packed;  // what the job_submit plugin would get, not sealed
};

/// Advice for `profile` as of now. Errors: nothing of it is known, or it was forgotten.
Result<Learned> load_learned(Database& db, const std::string& profile, const SiteConfig& config,
                             std::int64_t now_s);

/// Prints "sphase: WHY" on stderr; returns `code`.
int fail_with(const std::string& why, int code);

/// Writes to stdout. Returns the exit code: 1 if it cannot be written.
int print_out(const std::string& text);

}  // namespace sphase
