// From what was merged to advice.cdb: observes starts that have ended, and makes the advice of the
// profiles they belong to anew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/site_config.h"
#include "common/sqlite_db.h"

namespace sphase {

struct LearnOptions {
  std::string table;              // advice.cdb
  bool all = false;               // every profile, also those that nothing happened to
  std::int64_t jobs_most = 2000;  // job numbers looked at in one call; the rest waits in the queue
  int lock_wait_ms = 10'000;      // for another process that learns on the same database
};

struct LearnOutcome {
  std::int64_t jobs = 0;      // job numbers looked at
  std::int64_t observed = 0;  // starts that taught something
  std::int64_t skipped = 0;   // … that belong to no profile, or never ran
  std::int64_t profiles = 0;  // of which the advice was made anew
  std::int64_t advised = 0;   // … and is in the table now; the others do not have enough runs
  std::int64_t entries = 0;   // of the whole table; -1: it was not written, nothing had changed
  bool more = false;          // the queue holds more than jobs_most
  std::vector<std::string> problems;  // of single jobs and of the old table
};

/// Observations go in transactions of 64 jobs; then the table is written aside and renamed. If it
/// cannot be written, the next call makes the same profiles anew. Entries of other profiles keep
/// their value, and are dropped a month after they expired. All profiles are made if the table is
/// missing or damaged.
/// Errors: the database or the table cannot be written; somebody else learns on this database.
Result<LearnOutcome> learn(Database& db, const SiteConfig& config, const LearnOptions& options,
                           std::int64_t now_ns);

/// "3 jobs with news, 2 starts observed, …", for people.
std::string sentence_of(const LearnOutcome& outcome);

/// True if `conf` was changed after `table` was written, or there is no table: another policy or
/// margin makes other advice of the same runs.
bool older_than(const std::string& table, const std::string& conf);

}  // namespace sphase
