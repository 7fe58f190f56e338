// cluster.db: where everything that the nodes recorded and the scheduler knows comes together.
//
// One writer (sphase-collector), readers at any time (sphase). Rollback journal, so that a copy, or
// a file on read-only media, can be read as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/sqlite_db.h"

namespace sphase {

/// Version of the tables of cluster.db, kept in PRAGMA user_version. node.db has its own:
/// kSchemaVersion of common/vocabulary.h.
inline constexpr int kClusterSchemaVersion = 4;

/// $SPHASE_DB, or /var/lib/sphase/cluster.db.
std::string default_cluster_path();

/// Opens cluster.db for merging; makes it (mode 0600) where absent, and brings one of an older
/// version up to date in one transaction.
/// Errors: on a network file system, a newer schema, or a file that is something else.
Result<Database> open_cluster(const std::string& path);

/// Opens cluster.db to read. Errors as above, and where there is none or an older one.
Result<Database> read_cluster(const std::string& path);

/// Name of the network file system with this statfs magic, nullopt for any other. SQLite's locks
/// are not reliable there. Source: statfs(2) and the file systems' own headers.
std::optional<std::string_view> network_file_system(std::int64_t statfs_magic);

/// One sentence if `path` (or the folder it would be made in) is on a network file system.
std::optional<std::string> on_network_file_system(const std::string& path);

}  // namespace sphase
