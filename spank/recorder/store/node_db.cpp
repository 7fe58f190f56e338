#include "spank/recorder/store/node_db.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "common/clock.h"
#include "common/schema.h"
#include "common/vocabulary.h"
#include "spank/recorder/file.h"

namespace sphase {
namespace {

/// Source: linux/magic.h, and statfs(2) for those that are not in it.
struct Magic {
  long type;
  const char* name;
};
constexpr Magic kNetworkFileSystems[] = {
    {0x6969, "NFS"},      {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x517b, "SMB"},
    {0xff534d42, "CIFS"}, {0xfe534d42, "SMB2"},   {0x00c36400, "Ceph"},  {0x5346414f, "AFS"},
    {0x01021997, "9P"},   {0x19830326, "BeeGFS"}, {0x7461636f, "OCFS2"}, {0x47465332, "GFS2"},
    {0x65735546, "FUSE"},
};

bool is_damage(int code) {
  const int base = code & 0xff;
  return base == SQLITE_CORRUPT || base == SQLITE_NOTADB;
}

Status make_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  const std::string above = std::filesystem::path(folder).parent_path();
  if (mkdir(above.c_str(), 0711) != 0 && errno != EEXIST && errno != ENOENT) {
    return errno_error("cannot make " + above);
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return errno_error("cannot make " + folder);
  }
  return Done{};
}

/// Moves the file and its helpers to NAME.<why>-<time>. The new name, or an error.
Result<std::string> set_aside(const std::string& path, const std::string& why) {
  std::int64_t second = epoch_ns() / 1'000'000'000;
  const auto name = [&] { return path + "." + why + "-" + std::to_string(second); };
  while (access(name().c_str(), F_OK) == 0) ++second;  // never over an earlier one
  const std::string aside = name();
  if (rename(path.c_str(), aside.c_str()) != 0) return errno_error("cannot move " + path);
  for (const char* helper : {"-wal", "-shm"}) {
    if (rename((path + helper).c_str(), (aside + helper).c_str()) != 0 && errno != ENOENT) {
      return errno_error("cannot move " + path + helper);
    }
  }
  return aside;
}

Status prepare(Database& db, std::int64_t max_bytes) {
  auto tuned = db.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
      "PRAGMA journal_size_limit = 4194304; PRAGMA wal_autocheckpoint = 500");
  if (!tuned) return tuned;
  auto page = db.prepare("PRAGMA page_size");
  if (!page) return Error{page.error()};
  if (!page->step()) return Error{"no page size"};
  const std::int64_t pages = max_bytes / page->integer(0);
  while (page->step()) {
  }
  return db.exec("PRAGMA max_page_count = " + std::to_string(pages));
}

Status create_tables(Database& db) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto made = db.exec(std::string(kNodeSchema));
  if (!made) return made;
  auto versioned = db.set_user_version(kSchemaVersion);
  if (!versioned) return versioned;
  return transaction->commit();
}

/// An older file, under the lock of open_node_db(): its recorders go on writing what they know.
Status migrate(Database& db) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto version = db.user_version();
  if (!version) return Error{version.error()};
  Status done = Done{};
  if (*version < 2) done = add_counters(db);
  if (done && *version < 2) done = db.exec(std::string(kSegmentSchema));
  if (done && *version < 3) done = db.exec(std::string(kShippingSchema));
  if (done) done = db.set_user_version(kSchemaVersion);
  return done ? transaction->commit() : done;
}

constexpr const char* kOtherProgram = "tables of another program";

/// 0 for a new file. A damaged file is told by is_damage(sqlite3_extended_errcode).
Result<int> version_of(Database& db) {
  auto version = db.user_version();
  if (!version) return version;
  auto tables = db.prepare(
      "SELECT count(*), coalesce(sum(name IN ('run', 'sample', 'phase', 'notice', 'meta')), 0)"
      " FROM sqlite_schema WHERE type = 'table'");
  if (!tables) return Error{tables.error()};
  if (!tables->step()) return Error{tables->status() ? "empty" : tables->status().error()};
  const std::int64_t all = tables->integer(0);
  const std::int64_t ours = tables->integer(1);
  while (tables->step()) {
  }
  if (*version == 0 ? all > 0 : *version < 0 || ours < 5) return Error{kOtherProgram};
  return version;
}

/// Other recorders hold the lock for some ms; whoever holds it longer must not hold us.
constexpr std::int64_t kLockNs = 2'000'000'000;

bool lock_within(const Fd& file, std::int64_t limit_ns) {
  const std::int64_t deadline_ns = monotonic_ns() + limit_ns;
  const timespec nap{0, 2'000'000};
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (monotonic_ns() > deadline_ns) return false;
    nanosleep(&nap, nullptr);
  }
  return true;
}

Result<Fd> lock_file(const std::string& path) {
  Fd lock(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return errno_error("cannot open " + path + ".lock");
  if (!lock_within(lock, kLockNs)) return errno_error("cannot lock " + path + ".lock");
  return lock;
}

}  // namespace

const char* network_file_system_name(long f_type) {
  for (const Magic& magic : kNetworkFileSystems) {
    if (magic.type == f_type) return magic.name;
  }
  return nullptr;
}

std::string network_file_system(const std::string& path) {
  struct statfs found {};
  std::string at = path;
  while (statfs(at.c_str(), &found) != 0) {
    const std::string up = std::filesystem::path(at).parent_path();
    if (up == at || up.empty()) return "";
    at = up;
  }
  const char* const name = network_file_system_name(found.f_type);
  return name != nullptr ? name : "";
}

Result<OpenedNodeDb> open_node_db(const std::string& path, std::int64_t max_bytes) {
  const std::string network = network_file_system(path);
  if (!network.empty()) {
    return Error{path + " is on " + network + "; node_db= must name a file on a local disk"};
  }
  auto folder = make_folder(path);
  if (!folder) return Error{folder.error()};
  const auto lock = lock_file(path);
  if (!lock) return Error{lock.error()};

  std::string aside;
  std::string why;
  for (int attempt = 0; attempt < 2; ++attempt) {
    // SQLite gives a new file our umask; nobody but root may read other people's telemetry.
    const mode_t before = umask(0077);
    auto db = Database::open(path, Database::Mode::kCreate);
    umask(before);
    if (!db) return Error{db.error()};
    auto version = version_of(*db);
    const bool damaged = !version && is_damage(sqlite3_extended_errcode(db->raw()));
    if (version && *version <= kSchemaVersion) {
      auto ready = prepare(*db, max_bytes);
      if (ready && *version == 0) ready = create_tables(*db);
      if (ready && *version > 0 && *version < kSchemaVersion) ready = migrate(*db);
      if (ready) return OpenedNodeDb{std::move(*db), aside, why};
      if (!is_damage(sqlite3_extended_errcode(db->raw()))) {
        return Error{path + ": " + ready.error()};
      }
      why = ready.error();
    } else if (version) {
      why = "its schema version is " + std::to_string(*version) + ", ours is " +
            std::to_string(kSchemaVersion);
    } else if (damaged || version.error() == kOtherProgram) {
      why = version.error();
    } else {
      return Error{path + ": " + version.error()};
    }
    auto moved = set_aside(path, version && *version > kSchemaVersion ? "newer" : "damaged");
    if (!moved) return Error{moved.error()};
    aside = *moved;
  }
  return Error{path + ": " + why};
}

bool was_moved(Database& db) {
  int moved = 0;
  sqlite3_file_control(db.raw(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

Result<std::string> set_aside_damaged(Database& db, const std::string& path) {
  const auto lock = lock_file(path);
  if (!lock) return Error{lock.error()};
  if (was_moved(db)) return std::string();
  return set_aside(path, "damaged");
}

namespace {

Result<std::int64_t> sealed_rows(Database& db, const std::string& where) {
  auto query = db.prepare("SELECT coalesce(sum(rows), 0) FROM segment" + where);
  if (!query) return Error{query.error()};
  if (!query->step()) return Error{query->status().error()};
  const std::int64_t rows = query->integer(0);
  while (query->step()) {
  }
  return rows;
}

}  // namespace

Status note_change(Database& db, std::int64_t run_id) {
  auto next = db.exec(
      "INSERT INTO meta VALUES ('change', '1') ON CONFLICT (key) DO UPDATE SET value = value + 1");
  if (!next) return next;
  auto write = db.prepare(
      "UPDATE run SET change = (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'change')"
      " WHERE run_id = ?");
  if (!write) return Error{write.error()};
  return write->bind(1, run_id).run();
}

Result<bool> drop_oldest(Database& db, const std::string& keep_start_ns) {
  auto oldest = db.prepare(
      "SELECT run_id, EXISTS (SELECT 1 FROM sample WHERE sample.run_id = run.run_id) OR EXISTS"
      " (SELECT 1 FROM segment WHERE segment.run_id = run.run_id AND source = 'sample') FROM run "
      "WHERE (end_ns IS NOT NULL OR last_ns < ?) AND start_ns <> " +
      keep_start_ns +
      " ORDER BY change <= coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key ="
      " 'shipped'), -1) DESC, 2 DESC, start_ns LIMIT 1");
  if (!oldest) return Error{oldest.error()};
  // A run without an end whose recorder has been silent for an hour was lost: it may go too.
  oldest->bind(1, epoch_ns() - 3'600'000'000'000);
  if (!oldest->step()) return false;
  const std::string of_run = " WHERE run_id = " + std::to_string(oldest->integer(0));
  const bool has_samples = oldest->integer(1) != 0;
  while (oldest->step()) {
  }
  const std::string segments = of_run + (has_samples ? " AND source = 'sample'" : "");
  auto sealed = sealed_rows(db, segments);
  if (!sealed) return Error{sealed.error()};
  // Unlike changes(), this counts the rows of other tables that go with a run.
  const std::int64_t before = sqlite3_total_changes64(db.raw());
  auto deleted = db.exec("DELETE FROM segment" + segments);
  const std::int64_t segments_deleted = sqlite3_total_changes64(db.raw()) - before;
  if (deleted) deleted = db.exec((has_samples ? "DELETE FROM sample" : "DELETE FROM run") + of_run);
  if (!deleted) return Error{deleted.error()};
  const std::int64_t rows = sqlite3_total_changes64(db.raw()) - before - segments_deleted + *sealed;
  auto counted = db.exec("INSERT INTO meta VALUES ('rows_deleted', " + std::to_string(rows) +
                         ") ON CONFLICT (key) DO UPDATE SET value = value + excluded.value");
  if (!counted) return Error{counted.error()};
  return true;
}

}  // namespace sphase
