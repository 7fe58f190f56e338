#include "collector/cluster_db.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::string fixture(const char* name) {
  std::ifstream file(std::string(SPHASE_FIXTURES "/") + name);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A cluster.db as version 1 or 2 made it, with a run and its record.
void make_version(int version, const std::string& path) {
  auto db = Database::open(path, Database::Mode::kCreate);
  REQUIRE(db);
  std::string schema = fixture("cluster_2.sql");
  if (version == 1) {
    schema.resize(schema.find("-- Since version 2."));
    const auto from = schema.find("  admin_comment TEXT");
    REQUIRE(from != std::string::npos);
    schema.erase(from, schema.find('\n', from) + 1 - from);
  }
  run_sql(*db, fixture("node_1.sql") + schema);
  run_sql(*db, "PRAGMA user_version = " + std::to_string(version));
  add_run(*db, {});
  add_job(*db, {});
}

/// Names and SQL of all tables, columns, indices and triggers, blanks and comments aside.
std::string shape_of(Database& db) {
  auto row = db.prepare(
      "SELECT m.type || ' ' || m.name || ' ' || coalesce(group_concat(c.name), '') FROM "
      "sqlite_schema"
      " AS m LEFT JOIN pragma_table_info(m.name) AS c GROUP BY m.name ORDER BY m.name");
  REQUIRE(row);
  std::string shape;
  while (row->step()) shape += row->text(0) + '\n';
  return shape;
}

}  // namespace

TEST_CASE("an older cluster.db is brought up to date and keeps its rows") {
  int version = 0;
  SUBCASE("of version 1") { version = 1; }
  SUBCASE("of version 2") { version = 2; }
  const TempFolder folder;
  make_version(version, folder / "old.db");
  auto old = open_cluster(folder / "old.db");
  REQUIRE_MESSAGE(old, (old ? "" : old.error()));
  CHECK(*old->user_version() == kClusterSchemaVersion);
  auto fresh = open_cluster(folder / "new.db");
  CHECK(shape_of(*old) == shape_of(*fresh));
  auto row = old->prepare(
      "SELECT run.job_name, job.user, job.admin_comment, learn_queue.job_id FROM run JOIN job"
      " USING (cluster, job_id) JOIN learn_queue USING (cluster, job_id)");
  REQUIRE(row);
  REQUIRE(row->step());
  CHECK(row->text(0) == "solver");
  CHECK(row->text(1) == "alice");
  CHECK(row->is_null(2));
  CHECK(row->integer(3) == 123);
  auto open = old->prepare("SELECT job_id, since_time FROM open_job");
  REQUIRE(open);
  REQUIRE(open->step());  // nobody looked after its end
  CHECK(open->integer(0) == 123);
  CHECK(open->integer(1) == kStartS);
}

TEST_CASE("a job that was looked at well after its end is not opened again by the migration") {
  const TempFolder folder;
  make_version(2, folder / "old.db");
  {
    auto db = Database::open(folder / "old.db", Database::Mode::kReadWrite);
    REQUIRE(db);
    run_sql(*db, "UPDATE job SET seen_ns = (end_time + 601) * 1000000000");
  }
  auto db = open_cluster(folder / "old.db");
  REQUIRE(db);
  auto open = db->prepare("SELECT count(*) FROM open_job");
  REQUIRE(open);
  REQUIRE(open->step());
  CHECK(open->integer(0) == 0);
}

TEST_CASE("an older cluster.db is read by nobody before it was brought up to date") {
  const TempFolder folder;
  make_version(1, folder / "old.db");
  const std::string error = read_cluster(folder / "old.db").error();
  CHECK(error.find("older schema version 1: run `sphase-collector merge` once") !=
        std::string::npos);
  REQUIRE(open_cluster(folder / "old.db"));
  CHECK(read_cluster(folder / "old.db"));
}

TEST_CASE("a migration that fails changes nothing") {
  const TempFolder folder;
  make_version(1, folder / "old.db");
  {
    auto db = Database::open(folder / "old.db", Database::Mode::kReadWrite);
    REQUIRE(db);
    run_sql(*db, "CREATE TABLE observation (x)");
  }
  CHECK(open_cluster(folder / "old.db").error().find("observation already exists") !=
        std::string::npos);
  auto db = Database::open(folder / "old.db", Database::Mode::kReadWrite);
  REQUIRE(db);
  CHECK(*db->user_version() == 1);
  CHECK_FALSE(db->prepare("SELECT admin_comment FROM job"));
}

TEST_CASE("cluster.db is made for its owner alone, with the schema's version") {
  const TempFolder folder;
  auto db = open_cluster(folder / "cluster.db");
  REQUIRE(db);
  CHECK(mode_of(folder / "cluster.db") == 0600);
  CHECK(*db->user_version() == kClusterSchemaVersion);
}

TEST_CASE("a cluster.db of a newer version is refused in one line") {
  const TempFolder folder;
  {
    auto db = open_cluster(folder / "cluster.db");
    REQUIRE(db);
    run_sql(*db, "PRAGMA user_version = 7");
  }
  for (const std::string& error :
       {open_cluster(folder / "cluster.db").error(), read_cluster(folder / "cluster.db").error()}) {
    CHECK(error.find("schema version 7, newer than this program") != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("another program's database, and a file that is none, are refused and left alone") {
  const TempFolder folder;
  {
    auto db = Database::open(folder / "other.db", Database::Mode::kCreate);
    run_sql(*db, "CREATE TABLE t (x)");
  }
  CHECK(open_cluster(folder / "other.db").error().find("not a cluster.db") != std::string::npos);
  const auto text = folder.write("text", "hello");
  CHECK_FALSE(open_cluster(text));
  CHECK(text_of(text) == "hello");
}

TEST_CASE("reading where there is none says what would make it") {
  const TempFolder folder;
  CHECK(read_cluster(folder / "none.db").error().find("sphase-collector merge") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "none.db"));
}

TEST_CASE("a folder that does not exist is an error with its reason") {
  CHECK(open_cluster("/nonexistent/cluster.db").error().find("No such file") != std::string::npos);
}

TEST_CASE("network file systems are known by their magic, local ones are not refused") {
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0x0BD00BD0) == "Lustre");
  CHECK(network_file_system(0x47504653) == "GPFS");
  CHECK(network_file_system(static_cast<std::int32_t>(0xFF534D42)) == "CIFS");  // f_type may be < 0
  CHECK_FALSE(network_file_system(0xEF53).has_value());                         // ext4
  CHECK_FALSE(network_file_system(0x01021994).has_value());                     // tmpfs
  CHECK_FALSE(on_network_file_system("/tmp/not-there-yet.db").has_value());
}

TEST_CASE("the database is the one that SPHASE_DB names") {
  setenv("SPHASE_DB", "/x/y.db", 1);
  CHECK(default_cluster_path() == "/x/y.db");
  setenv("SPHASE_DB", "", 1);
  CHECK(default_cluster_path() == "/var/lib/sphase/cluster.db");
  unsetenv("SPHASE_DB");
  CHECK(default_cluster_path() == "/var/lib/sphase/cluster.db");
}
