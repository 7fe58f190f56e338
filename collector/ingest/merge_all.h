// One round of merging: every file under some paths, then the scheduler's records. What `merge`
// does once and `watch` again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collector/ingest/sources.h"
#include "collector/records/records.h"
#include "common/sqlite_db.h"

namespace sphase {

struct MergeOutcome {
  std::int64_t files = 0;      // merged
  std::int64_t unchanged = 0;  // files that had not changed since the last round
  std::int64_t runs = 0, changed = 0, rows = 0, records = 0;
  std::vector<std::string> problems;  // of files
  std::vector<std::string> warnings;  // nothing found; a daemon that did not answer
};

/// "2 files, 8 runs, 3 of them new or with news, …", for people.
std::string sentence_of(const MergeOutcome& outcome);

/// Size and time of the files under one path as they were merged last, so that the next round can
/// leave out those that have not changed. Kept in memory, by one process.
class MergedFiles {
 public:
  /// True if `path` and its -wal are as `remember` saw them.
  bool same(const std::string& path) const;
  /// Notes them as they are now; call it before the file is read.
  void look(const std::string& path);
  /// What `look` saw has been merged.
  void remember(const std::string& path);
  /// Drops those that are not in `files` any more, so that it does not grow as notes come and go.
  void keep(const std::vector<SourceFile>& files);
  void clear() { merged_.clear(); }

 private:
  /// ns, B of the file and of its -wal; -1: there is none.
  struct Stamp {
    std::int64_t time_ns = -1, bytes = -1, wal_time_ns = -1, wal_bytes = -1;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::string& path);

  std::map<std::string, Stamp> merged_;
  Stamp looked_;
};

/// Merges what is under `path`. `known`: leave out unchanged files (nullptr: none). `stop` is asked
/// before each file.
void merge_path(Database& cluster, const std::string& path, MergeOutcome& outcome,
                MergedFiles* known = nullptr, const std::function<bool()>& stop = {});

}  // namespace sphase
