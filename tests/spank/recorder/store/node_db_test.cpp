#include "spank/recorder/store/node_db.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "common/clock.h"
#include "common/schema.h"
#include "common/vocabulary.h"
#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr std::int64_t kCap = 64 << 20;

OpenedNodeDb must_open(const std::string& path, std::int64_t cap = kCap) {
  auto opened = open_node_db(path, cap);
  REQUIRE_MESSAGE(opened, (opened ? "" : opened.error()));
  return std::move(*opened);
}

std::int64_t number(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE(query);
  REQUIRE(query->step());
  return query->integer(0);
}

/// A run with samples; `end_ns` 0: still running, last seen at `last_ns`.
void add_run(Database& db, std::int64_t start_ns, int samples, std::int64_t end_ns,
             std::int64_t last_ns) {
  const std::string start = std::to_string(start_ns);
  REQUIRE(
      db.exec("INSERT INTO run (cluster, job_id, restart_count, start_ns, step, node, uid,"
              " period_ns, sphase_version, end_ns, last_ns) VALUES ('c', 1, 0, " +
              start + ", '0', 'n', 0, 1, 'x', " + (end_ns != 0 ? std::to_string(end_ns) : "NULL") +
              ", " + std::to_string(last_ns) + ")"));
  const std::string run = std::to_string(db.last_rowid());
  REQUIRE(
      db.exec("INSERT INTO phase (run_id, scope, task, path, number, depth, count, threads,"
              " begin_ns) VALUES (" +
              run + ", 'task', 0, 'a', 1, 0, 1, 1, 5)"));
  for (int i = 0; i < samples; ++i) {
    REQUIRE(db.exec("INSERT INTO sample (run_id, time_ns, kind) VALUES (" + run + ", " +
                    std::to_string(i) + ", 'tick')"));
  }
}

bool is_ours(Database& db) {
  return *db.user_version() == kSchemaVersion && number(db, "SELECT count(*) FROM run") == 0;
}

}  // namespace

TEST_CASE("a new file belongs to its owner alone, whatever the umask") {
  for (const mode_t mask : {0000, 0022, 0077}) {
    const TempFolder folder;
    const mode_t before = umask(mask);
    const std::string path = folder / "above/n1/node.db";
    OpenedNodeDb opened = must_open(path);
    CHECK(is_ours(opened.db));
    CHECK(opened.set_aside == "");
    CHECK(umask(before) == mask);  // left as it was
    CHECK(mode_of(folder / "above/n1") == 0700);
    for (const char* file : {"", "-wal", "-shm", ".lock"}) {
      CAPTURE(file);
      CHECK(mode_of(path + file) == 0600);
    }
  }
}

TEST_CASE("an existing file is opened as it is") {
  const TempFolder folder;
  {
    OpenedNodeDb opened = must_open(folder / "n/node.db");
    add_run(opened.db, 1, 3, 2, 2);
  }
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside == "");
  CHECK(number(opened.db, "SELECT count(*) FROM sample") == 3);
  CHECK(number(opened.db, "PRAGMA foreign_keys") == 1);
}

TEST_CASE("an older file gets what is new and keeps its rows") {
  const TempFolder folder;
  REQUIRE(mkdir((folder / "n").c_str(), 0700) == 0);
  {
    auto old = Database::open(folder / "n/node.db", Database::Mode::kCreate);
    REQUIRE(old);
    std::ifstream file(SPHASE_FIXTURES "/node_1.sql");
    const std::string schema{std::istreambuf_iterator<char>(file), {}};
    REQUIRE(old->exec(schema));
    REQUIRE(old->set_user_version(1));
    add_run(*old, 1, 3, 2, 2);
  }
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside == "");
  CHECK(*opened.db.user_version() == kSchemaVersion);
  CHECK(number(opened.db, "SELECT count(*) FROM sample") == 3);
  CHECK(number(opened.db, "SELECT count(*) FROM run WHERE counter_source IS NULL") == 1);
  CHECK(number(opened.db, "SELECT count(*) FROM counter") == 0);
  CHECK(number(opened.db, "SELECT count(*) FROM segment") == 0);
}

TEST_CASE("an empty file becomes a database") {
  const TempFolder folder;
  folder.write("n/node.db", "");
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside == "");
  CHECK(is_ours(opened.db));
}

TEST_CASE("a newer file is set aside and named, and keeps its rows") {
  const TempFolder folder;
  {
    OpenedNodeDb opened = must_open(folder / "n/node.db");
    add_run(opened.db, 1, 3, 2, 2);
    REQUIRE(opened.db.set_user_version(kSchemaVersion + 1));
  }
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside.find(folder / "n/node.db.newer-") == 0);
  CHECK(opened.why.find("schema version is " + std::to_string(kSchemaVersion + 1)) !=
        std::string::npos);
  CHECK(is_ours(opened.db));
  auto aside = Database::open(opened.set_aside, Database::Mode::kReadOnly);
  REQUIRE(aside);
  CHECK(number(*aside, "SELECT count(*) FROM sample") == 3);
}

TEST_CASE("a file that is no database is set aside and named") {
  const TempFolder folder;
  folder.write("n/node.db", std::string(8192, 'x'));
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside.find(folder / "n/node.db.damaged-") == 0);
  CHECK(text_of(opened.set_aside) == std::string(8192, 'x'));
  CHECK(opened.why.find("not a database") != std::string::npos);
  CHECK(is_ours(opened.db));
}

TEST_CASE("two damaged files within a second are both kept") {
  const TempFolder folder;
  for (const char letter : {'x', 'y', 'z'}) {
    folder.write("n/node.db", std::string(8192, letter));
    (void)must_open(folder / "n/node.db");
    std::filesystem::remove(folder / "n/node.db");
  }
  int kept = 0;
  for (const std::string& name : names_in(folder / "n")) {
    kept += name.find("node.db.damaged-") == 0 && name.find("-wal") == std::string::npos &&
                    name.find("-shm") == std::string::npos
                ? 1
                : 0;
  }
  CHECK(kept == 3);
}

TEST_CASE("a file cut in the middle of its schema is set aside") {
  const TempFolder folder;
  { (void)must_open(folder / "n/node.db"); }
  std::filesystem::resize_file(folder / "n/node.db", 4096 + 100);
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  CHECK(opened.set_aside != "");
  CHECK(is_ours(opened.db));
}

TEST_CASE("tables of another program are set aside, whatever version it gave them") {
  for (const int version : {0, kSchemaVersion, -1}) {
    CAPTURE(version);
    const TempFolder folder;
    std::filesystem::create_directory(folder / "n");
    {
      auto other = Database::open(folder / "n/node.db", Database::Mode::kCreate);
      REQUIRE(other);
      REQUIRE(other->exec("CREATE TABLE bookmarks (url TEXT)"));
      REQUIRE(other->set_user_version(version));
    }
    OpenedNodeDb opened = must_open(folder / "n/node.db");
    CHECK(opened.set_aside != "");
    CHECK(opened.why == "tables of another program");
    CHECK(is_ours(opened.db));
  }
}

TEST_CASE("a folder that cannot be made or written is an error that names it") {
  const TempFolder folder;
  chmod(folder.path().c_str(), 0755);
  folder.write("file", "");
  const auto failed = open_node_db(folder / "file/node.db", kCap);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().find(folder / "file") != std::string::npos);

  const int code = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 1;
    if (geteuid() != 65534) chmod(folder.path().c_str(), 0555);
    const auto denied = open_node_db(folder / "node.db", kCap);
    if (denied) return 2;
    return denied.error().find("Permission denied") != std::string::npos ? 0 : 3;
  });
  CHECK(code == 0);
  chmod(folder.path().c_str(), 0755);
}

TEST_CASE("a full disk is an error, and no crash (needs root)") {
  const TempFolder folder;
  const SmallDisk disk(folder / "disk", "16k");
  if (!disk) {
    MESSAGE("skipped: only root can mount a small tmpfs");
    return;
  }
  const auto failed = open_node_db(disk.path() + "/n/node.db", kCap);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().find(disk.path()) != std::string::npos);
}

TEST_CASE("network file systems are refused by their statfs magic") {
  for (const auto& [type, name] : {std::pair<long, const char*>{0x6969, "NFS"},
                                   {0x0bd00bd0, "Lustre"},
                                   {0x47504653, "GPFS"},
                                   {0xff534d42, "CIFS"},
                                   {0x00c36400, "Ceph"},
                                   {0x19830326, "BeeGFS"},
                                   {0x65735546, "FUSE"}}) {
    REQUIRE(network_file_system_name(type) != nullptr);
    CHECK(std::string(network_file_system_name(type)) == name);
  }
  for (const long local : {0x01021994L, 0xEF53L, 0x58465342L, 0x9123683EL, 0x2FC12FC1L, 0L, -1L}) {
    CHECK(network_file_system_name(local) == nullptr);
  }
  CHECK(network_file_system("/proc/self") == "");
  CHECK(network_file_system("/no/such/folder") == "");
}

TEST_CASE(
    "a lock that nobody gives back is an error after two seconds, not a recorder that hangs") {
  const TempFolder folder;
  const std::string path = folder.path() + "/node/node.db";
  REQUIRE(mkdir((folder.path() + "/node").c_str(), 0700) == 0);
  const int held = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(flock(held, LOCK_EX) == 0);
  const std::int64_t begun_ns = monotonic_ns();
  const auto opened = open_node_db(path, 64 << 20);
  CHECK_FALSE(opened);
  CHECK(opened.error().find("cannot lock") != std::string::npos);
  CHECK(monotonic_ns() - begun_ns < 10'000'000'000);
  close(held);
}

TEST_CASE("eight processes that open at once all get the same good file") {
  const TempFolder folder;
  const std::string path = folder / "n/node.db";
  std::vector<pid_t> children;
  children.reserve(8);
  for (int i = 0; i < 8; ++i) {
    children.push_back(start_child([&, i] {
      auto opened = open_node_db(path, kCap);
      if (!opened || !opened->set_aside.empty()) return 1;
      auto transaction = Transaction::begin(opened->db);
      if (!transaction) return 2;
      if (!opened->db.exec("INSERT INTO meta VALUES ('" + std::to_string(i) + "', 'x')")) return 3;
      return transaction->commit() ? 0 : 4;
    }));
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  OpenedNodeDb opened = must_open(path);
  CHECK(number(opened.db, "SELECT count(*) FROM meta WHERE value = 'x'") == 8);
}

TEST_CASE("what a collector has goes before what it has not") {
  const TempFolder folder;
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  Database& db = opened.db;
  const std::int64_t now = epoch_ns();
  add_run(db, 10, 2, 11, now);  // older, and nobody has it
  add_run(db, 20, 2, 21, now);
  REQUIRE(note_change(db, 2));
  REQUIRE(note_change(db, 1));
  REQUIRE(db.exec("INSERT INTO meta VALUES ('shipped', '1')"));
  const auto samples_of = [&](int run) {
    return number(db, "SELECT count(*) FROM sample WHERE run_id = " + std::to_string(run));
  };
  REQUIRE(drop_oldest(db, "7"));
  CHECK(samples_of(1) == 2);
  CHECK(samples_of(2) == 0);
  REQUIRE(drop_oldest(db, "7"));
  CHECK(number(db, "SELECT count(*) FROM run") == 1);
  REQUIRE(drop_oldest(db, "7"));
  CHECK(samples_of(1) == 0);
}

TEST_CASE("changes are numbered over all runs, and go on after the newest run is gone") {
  const TempFolder folder;
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  Database& db = opened.db;
  add_run(db, 10, 0, 11, 11);
  add_run(db, 20, 0, 21, 21);
  const auto change_of = [&](int run) {
    return number(db, "SELECT change FROM run WHERE run_id = " + std::to_string(run));
  };
  REQUIRE(note_change(db, 1));
  REQUIRE(note_change(db, 2));
  CHECK(change_of(1) == 1);
  CHECK(change_of(2) == 2);
  REQUIRE(db.exec("DELETE FROM run WHERE run_id = 2"));
  REQUIRE(note_change(db, 1));
  CHECK(change_of(1) == 3);
}

TEST_CASE("the oldest ended run goes first: its samples, then those of others, then whole runs") {
  const TempFolder folder;
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  Database& db = opened.db;
  const std::int64_t now = epoch_ns();
  add_run(db, 30, 2, 31, 31);
  add_run(db, 10, 2, 11, 11);
  add_run(db, 20, 0, 21, 21);
  add_run(db, 5, 2, 0, now);  // still running
  add_run(db, 7, 2, 8, now);  // our own
  const auto drop = [&] {
    const auto dropped = drop_oldest(db, "7");
    REQUIRE(dropped);
    return *dropped;
  };
  const auto samples_of = [&](int start) {
    return number(db, "SELECT count(*) FROM sample JOIN run USING (run_id) WHERE start_ns = " +
                          std::to_string(start));
  };
  const auto runs_of = [&](int start) {
    return number(db, "SELECT count(*) FROM run WHERE start_ns = " + std::to_string(start));
  };
  CHECK(drop());
  CHECK(samples_of(10) == 0);
  CHECK(samples_of(30) == 2);
  CHECK(drop());
  CHECK(samples_of(30) == 0);
  CHECK(runs_of(10) == 1);
  CHECK(drop());
  CHECK(runs_of(10) == 0);
  CHECK(drop());
  CHECK(runs_of(20) == 0);
  CHECK(drop());
  CHECK(runs_of(30) == 0);
  CHECK_FALSE(drop());
  CHECK(samples_of(5) == 2);
  CHECK(samples_of(7) == 2);
  // 4 samples, 3 runs, and a phase of each of those runs.
  CHECK(number(db, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rows_deleted'") == 10);
}

TEST_CASE("sealed samples go with the raw ones, and are counted as rows") {
  const TempFolder folder;
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  Database& db = opened.db;
  add_run(db, 10, 2, 11, 11);  // 2 raw samples and a raw phase
  add_run(db, 20, 0, 21, 21);
  for (const int run : {1, 2}) {
    for (const auto* table : {"sample", "phase"}) {
      REQUIRE(db.exec("INSERT INTO segment(run_id, source, sealed_ns, rows, data) VALUES (" +
                      std::to_string(run) + ", '" + table + "', 5, 100, x'00')"));
    }
  }
  const auto deleted = [&] {
    return number(db, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rows_deleted'");
  };
  REQUIRE(*drop_oldest(db, "7"));
  CHECK(deleted() == 102);
  CHECK(number(db, "SELECT count(*) FROM segment WHERE run_id = 1 AND source = 'phase'") == 1);
  REQUIRE(*drop_oldest(db, "7"));  // samples of others before whole runs
  CHECK(deleted() == 202);
  REQUIRE(*drop_oldest(db, "7"));
  CHECK(deleted() == 304);  // the sealed phases, the raw one and the run
  REQUIRE(*drop_oldest(db, "7"));
  CHECK(deleted() == 406);
  CHECK(number(db, "SELECT count(*) FROM segment") == 0);
  CHECK_FALSE(*drop_oldest(db, "7"));
}

TEST_CASE("a run whose recorder has been silent for an hour may go too") {
  const TempFolder folder;
  OpenedNodeDb opened = must_open(folder / "n/node.db");
  add_run(opened.db, 1, 1, 0, epoch_ns() - 7'200'000'000'000);
  CHECK(*drop_oldest(opened.db, "0"));
}

TEST_CASE("the cap is never crossed, however much is written") {
  const TempFolder folder;
  constexpr std::int64_t kSmall = 1 << 20;
  const std::string path = folder / "n/node.db";
  OpenedNodeDb opened = must_open(path, kSmall);
  add_run(opened.db, 1, 0, 2, 2);
  bool full = false;
  for (int i = 0; i < 100'000 && !full; ++i) {
    const auto done = opened.db.exec("INSERT INTO attribute VALUES (1, " + std::to_string(i) +
                                     ", '', 'k', '" + std::string(1000, 'x') + "')");
    full = !done;
  }
  CHECK(full);
  CHECK((sqlite3_extended_errcode(opened.db.raw()) & 0xff) == SQLITE_FULL);
  REQUIRE(opened.db.exec("PRAGMA wal_checkpoint(TRUNCATE)"));
  CHECK(static_cast<std::int64_t>(std::filesystem::file_size(path)) <= kSmall);
  // And there is room again once the oldest run is gone.
  REQUIRE(*drop_oldest(opened.db, "0"));
  CHECK(opened.db.exec("INSERT INTO meta VALUES ('k', 'v')"));
}

TEST_CASE("a file damaged while open is set aside once, by whoever finds it first") {
  const TempFolder folder;
  const std::string path = folder / "n/node.db";
  OpenedNodeDb first = must_open(path);
  OpenedNodeDb second = must_open(path);
  CHECK_FALSE(was_moved(first.db));
  const auto aside = set_aside_damaged(first.db, path);
  REQUIRE(aside);
  CHECK(*aside != "");
  CHECK(was_moved(second.db));
  OpenedNodeDb fresh = must_open(path);
  const auto nothing = set_aside_damaged(second.db, path);
  REQUIRE(nothing);
  CHECK(*nothing == "");
  CHECK_FALSE(was_moved(fresh.db));
}
