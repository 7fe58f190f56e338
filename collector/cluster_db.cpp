#include "collector/cluster_db.h"

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

#include "common/schema.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr auto kNetworkFileSystems = std::to_array<std::pair<std::int64_t, std::string_view>>({
    {0x6969, "NFS"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x19830326, "BeeGFS"},
    {0x00C36400, "CephFS"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB"},
    {0x517B, "SMB"},
    {0x5346414F, "AFS"},
    {0x73757245, "Coda"},
    {0xAAD7AAEA, "PanFS"},
    {0x20030528, "OrangeFS"},
});

std::string parent(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Makes the file before SQLite would, so that it is never readable by others.
Status make_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno == EEXIST ? Status(Done{}) : errno_error("cannot make " + path);
  ::close(file);
  return Done{};
}

Result<bool> has_table(Database& db, std::string_view name) {
  auto query = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
  if (!query) return Error{query.error()};
  const bool found = query->bind(1, name).step();
  if (!found && !query->status()) return Error{query->status().error()};
  return found;
}

/// Version of the schema, 0 if the file is new and has none yet. Never newer than ours.
Result<int> check_schema(Database& db, const std::string& path) {
  auto version = db.user_version();
  if (!version) return Error{path + ": " + version.error()};
  if (*version > kClusterSchemaVersion) {
    return Error{path + " has schema version " + std::to_string(*version) +
                 ", newer than this program (" + std::to_string(kClusterSchemaVersion) +
                 "): update sphase"};
  }
  auto ours = has_table(db, "source");
  if (!ours) return Error{path + ": " + ours.error()};
  if (*ours && *version > 0) return *version;
  auto empty = db.prepare("SELECT count(*) FROM sqlite_schema");
  if (!empty) return Error{path + ": " + empty.error()};
  if (empty->step() && empty->integer(0) == 0 && *version == 0) return 0;
  return Error{path + " is a database, but not a cluster.db"};
}

Status make_schema(Database& db) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto made = db.exec(std::string(kClusterSchema));
  if (made) made = db.exec(std::string(kRecordsSchema));
  if (made) made = db.set_user_version(kClusterSchemaVersion);
  return made ? transaction->commit() : made;
}

/// What cluster.sql has below its line "Since version 2": only there are these tables written down.
std::string_view since_version_2() {
  const auto at = kClusterSchema.find("-- Since version 2.");
  return at == std::string_view::npos ? std::string_view() : kClusterSchema.substr(at);
}

Status add_learning(Database& db) {
  auto done = db.exec("ALTER TABLE job ADD COLUMN admin_comment TEXT");
  if (done) done = db.exec(std::string(since_version_2()));
  // All that is there is still to be learned from.
  if (done) done = db.exec("INSERT INTO learn_queue SELECT DISTINCT cluster, job_id FROM run");
  return done;
}

/// The rows that are there stay as they are, in their own tables.
Status add_sealed(Database& db) {
  auto done = db.exec(std::string(kSealedSchema));
  if (done) done = db.exec("INSERT INTO phase_path SELECT DISTINCT run_id, path FROM phase");
  if (done) done = db.exec("DROP TABLE IF EXISTS merged_segment");
  return done;
}

/// Open is what version 3 would have asked for: without an end, not looked at well after it, or
/// mentioned after it.
Status add_records_tables(Database& db) {
  auto done = db.exec(
      "ALTER TABLE job ADD COLUMN requested_time_limit_s INTEGER;"
      "ALTER TABLE job ADD COLUMN array_tasks TEXT;"
      "ALTER TABLE job ADD COLUMN helper_of INTEGER;");
  if (done) done = db.exec(std::string(kRecordsSchema));
  if (!done) return done;
  return db.exec(
      "WITH mention(cluster, job_id, at) AS ("
      "  SELECT cluster, job_id, start_ns / 1000000000 FROM run UNION"
      "  SELECT cluster, job_id, time_ns / 1000000000 FROM notice),"
      " settled(cluster, job_id, ended) AS ("
      "  SELECT cluster, job_id, max(end_time) FROM job GROUP BY cluster, job_id"
      "  HAVING max(end_time IS NULL) = 0 AND max(seen_ns / 1000000000) - max(end_time) > 600)"
      " INSERT INTO open_job(cluster, job_id, since_time)"
      "  SELECT cluster, job_id, min(at) FROM mention LEFT JOIN settled USING (cluster, job_id)"
      "  GROUP BY cluster, job_id HAVING ended IS NULL OR max(at) > ended + 2");
}

Status migrate(Database& db) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  // Another process may have been faster.
  auto version = db.user_version();
  if (!version) return Error{version.error()};
  Status done = Done{};
  if (*version < 2) done = add_learning(db);
  if (done && *version < 3) done = add_counters(db);
  if (done && *version < 4) done = add_sealed(db);
  if (done && *version < 4) done = add_records_tables(db);
  if (done) done = db.set_user_version(kClusterSchemaVersion);
  return done ? transaction->commit() : done;
}

}  // namespace

std::string default_cluster_path() {
  const char* given = std::getenv("SPHASE_DB");
  return given != nullptr && *given != '\0' ? given : "/var/lib/sphase/cluster.db";
}

std::optional<std::string_view> network_file_system(std::int64_t statfs_magic) {
  for (const auto& [magic, name] : kNetworkFileSystems) {
    if (magic == (statfs_magic & 0xFFFFFFFF)) return name;
  }
  return std::nullopt;
}

std::optional<std::string> on_network_file_system(const std::string& path) {
  struct statfs facts {};
  if (statfs(path.c_str(), &facts) != 0 && statfs(parent(path).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  const auto name = network_file_system(facts.f_type);
  if (!name) return std::nullopt;
  return path + " is on " + std::string(*name) +
         ", where SQLite's locks cannot be relied on: put it on a local disk";
}

Result<Database> open_cluster(const std::string& path) {
  if (auto refused = on_network_file_system(path)) return Error{*refused};
  if (auto made = make_private(path); !made) return Error{made.error()};
  auto db = Database::open(path, Database::Mode::kReadWrite, 10'000);
  if (!db) return db;
  auto ready = check_schema(*db, path);
  if (!ready) return Error{ready.error()};
  if (*ready < kClusterSchemaVersion) {
    auto made = *ready == 0 ? make_schema(*db) : migrate(*db);
    if (!made) return Error{path + ": " + made.error()};
  }
  if (auto keys = db->exec("PRAGMA foreign_keys = ON"); !keys) return Error{keys.error()};
  return db;
}

Result<Database> read_cluster(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) {
    if (errno != ENOENT) return errno_error("cannot open " + path);
    return Error{"there is no " + path +
                 ": `sphase-collector merge` makes it, --db or $SPHASE_DB "
                 "names another"};
  }
  auto db = Database::open(path, Database::Mode::kReadOnly, 10'000);
  if (!db) return db;
  auto ready = check_schema(*db, path);
  if (!ready) return Error{ready.error()};
  if (*ready == 0) return Error{path + " is empty: `sphase-collector merge` fills it"};
  if (*ready < kClusterSchemaVersion) {
    return Error{path + " has the older schema version " + std::to_string(*ready) +
                 ": run `sphase-collector merge` once to bring it up to date"};
  }
  return db;
}

}  // namespace sphase
