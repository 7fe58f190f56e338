// What can be merged: the node.db files and notes under the paths that a person named.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"

namespace sphase {

struct SourceFile {
  enum class Kind { kNodeDb, kNote };
  Kind kind;
  std::string path;  // absolute
};

/// Files to merge, sorted by path. A named file is taken as it is; a folder is searched, not deeper
/// than three levels and not through symbolic links, for `node.db` and `notes/*.note`.
/// Empty: nothing was recorded there. Error: there is no such path.
Result<std::vector<SourceFile>> find_sources(const std::string& path);

struct CloseSqlite {
  void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
};

/// A node.db opened to read, inside one read transaction: all tables are of the same moment.
struct SourceDb {
  std::unique_ptr<sqlite3, CloseSqlite> raw;
  std::string warning;  // "" or what could not be read of it
};

/// Opens a node.db that may be live (other writers, WAL), a copy without its -wal, or on read-only
/// media. Errors: one sentence for an empty, damaged, foreign or newer file.
/// Beside a copy in a writable folder SQLite leaves an empty -wal and a -shm.
Result<SourceDb> open_source_db(const std::string& path);

}  // namespace sphase
