// node.db: opening it whatever state it is in, and keeping it below its cap.
//
// Several recorders of one node write it at once (SQLite, WAL). It must be on a local disk: SQLite
// on NFS, Lustre or GPFS locks up or corrupts, so those are refused by their statfs magic.
#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"
#include "common/sqlite_db.h"

namespace sphase {

struct OpenedNodeDb {
  Database db;
  std::string set_aside;  // name of a damaged or newer file that was moved out of the way, or ""
  std::string why;        // the reason for that
};

/// Makes the folder (0700) and the file (0600) where absent, migrates an older file, moves a
/// damaged or newer one aside. Holds PATH.lock (flock) while it does. Cost: 1 to 3 ms, more for a
/// new file. `max_bytes` becomes SQLite's own page limit: the cap cannot be crossed by a bug here.
Result<OpenedNodeDb> open_node_db(const std::string& path, std::int64_t max_bytes);

/// Moves a file that turned out to be damaged while `db` had it open out of the way, unless another
/// recorder has done so before. The new name, or "" if there was nothing to do.
Result<std::string> set_aside_damaged(Database& db, const std::string& path);
/// True if `path` is no longer the file that `db` has open: moved aside, or deleted.
bool was_moved(Database& db);

/// Gives the run the next number of meta.change: who asks the file for news is told of it. The
/// caller has begun a transaction. Cost: 8 µs.
Status note_change(Database& db, std::int64_t run_id);

/// Gives up the oldest ended run of the file (raw samples first, then all of it) to make room; one
/// that a collector has before one that it has not.
/// Counts what went in meta.rows_deleted. False: there is none to give up.
Result<bool> drop_oldest(Database& db, const std::string& keep_start_ns);

/// Empty if `path`'s file system may hold a live database, else its name.
std::string network_file_system(const std::string& path);
/// The same decision for a statfs f_type; 0 for a type that is fine.
const char* network_file_system_name(long f_type);

}  // namespace sphase
