#include "collector/ingest/sources.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::string problem_of(const std::string& path) {
  auto opened = open_source_db(path);
  return opened ? "" : opened.error();
}

std::int64_t runs_in(const SourceDb& db) {
  sqlite3_stmt* query = nullptr;
  REQUIRE(sqlite3_prepare_v2(db.raw.get(), "SELECT count(*) FROM run", -1, &query, nullptr) ==
          SQLITE_OK);
  REQUIRE(sqlite3_step(query) == SQLITE_ROW);
  const std::int64_t count = sqlite3_column_int64(query, 0);
  sqlite3_finalize(query);
  return count;
}

bool ends_with(const std::string& text, const std::string& end) { return text.ends_with(end); }

}  // namespace

TEST_CASE("a folder is searched three levels deep for node.db and notes") {
  const TempFolder folder;
  folder.write("node.db", "x");
  folder.write("n1/node.db", "x");
  folder.write("rack/n2/node.db", "x");
  folder.write("too/deep/for/node.db", "x");
  folder.write("n1/notes/1-2.note", "x");
  folder.write("n1/other.note", "x");
  folder.write("n1/node.db-wal", "x");
  folder.write("n1/node.db.damaged-1", "x");
  const auto found = find_sources(folder.path());
  REQUIRE(found);
  REQUIRE(found->size() == 4);
  CHECK(ends_with((*found)[0].path, "/n1/node.db"));
  CHECK(ends_with((*found)[1].path, "/n1/notes/1-2.note"));
  CHECK((*found)[1].kind == SourceFile::Kind::kNote);
  CHECK(ends_with((*found)[3].path, "/rack/n2/node.db"));
}

TEST_CASE("symbolic links inside a folder are not followed") {
  const TempFolder folder;
  folder.write("a/node.db", "x");
  std::filesystem::create_directory_symlink(folder / "a", folder / "again");
  std::filesystem::create_directory_symlink(folder.path(), folder / "a/loop");
  const auto found = find_sources(folder.path());
  REQUIRE(found);
  CHECK(found->size() == 1);
}

TEST_CASE("a file that is named is taken, whatever its name") {
  const TempFolder folder;
  const auto found = find_sources(folder.write("copy-of-n1.db", "x"));
  REQUIRE(found);
  CHECK(found->front().kind == SourceFile::Kind::kNodeDb);
}

TEST_CASE("a path that is not there is an error, an empty folder is not") {
  const TempFolder folder;
  CHECK(find_sources(folder / "none").error().find("No such file") != std::string::npos);
  CHECK(find_sources(folder.path())->empty());
}

TEST_CASE("a live file is read with what its writer has not yet moved out of the WAL") {
  const TempFolder folder;
  auto writer = make_node_db(folder / "node.db", "n1");
  add_run(writer, {});
  const auto opened = open_source_db(folder / "node.db");
  REQUIRE(opened);
  CHECK(runs_in(*opened) == 1);
  add_run(writer, {.job_id = 124});  // the writer goes on, the reader keeps its moment
  CHECK(runs_in(*opened) == 1);
}

TEST_CASE("a copy without its WAL is read") {
  const TempFolder folder;
  {
    auto writer = make_node_db(folder / "node.db", "n1");
    add_run(writer, {});
  }  // closing moves the WAL into the file
  std::filesystem::copy(folder / "node.db", folder / "copy.db");
  const auto opened = open_source_db(folder / "copy.db");
  REQUIRE(opened);
  CHECK(runs_in(*opened) == 1);
}

TEST_CASE("a file on read-only media is read, and what cannot be is told (needs root)") {
  const TempFolder folder;
  SmallDisk disk(folder / "disk", "4m");
  if (!disk) {
    MESSAGE("skipped: no tmpfs can be mounted here");
    return;
  }
  auto writer = make_node_db(folder / "live/node.db", "n1");
  add_run(writer, {});
  run_sql(writer, "PRAGMA wal_checkpoint(TRUNCATE)");
  std::filesystem::copy(folder / "live/node.db", folder / "disk/plain.db");
  add_run(writer, {.job_id = 124});
  std::filesystem::copy(folder / "live/node.db", folder / "disk/with-wal.db");
  std::filesystem::copy(folder / "live/node.db-wal", folder / "disk/with-wal.db-wal");
  REQUIRE(mount("none", disk.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=4m") == 0);
  const auto plain = open_source_db(folder / "disk/plain.db");
  REQUIRE(plain);
  CHECK(runs_in(*plain) == 1);
  CHECK(plain->warning.empty());
  const auto cut = open_source_db(folder / "disk/with-wal.db");
  REQUIRE(cut);
  CHECK(cut->warning.find("newest rows are missing") != std::string::npos);
}

TEST_CASE("every kind of file that is no good says what is wrong with it") {
  const TempFolder folder;
  CHECK(problem_of(folder / "none").find("No such file") != std::string::npos);
  CHECK(ends_with(problem_of(folder.write("empty.db", "")), "is empty"));
  CHECK(ends_with(problem_of(folder.write("text.db", "hello, this is not a database")),
                  "is not an SQLite database"));
  CHECK(ends_with(problem_of(folder.write("short.db", "SQL")), "is not an SQLite database"));
  {
    auto newer = make_node_db(folder / "newer.db", "n1");
    REQUIRE(newer.set_user_version(kSchemaVersion + 1));
    auto other = Database::open(folder / "other.db", Database::Mode::kCreate);
    run_sql(*other, "CREATE TABLE t (x)");
    auto cluster = open_cluster(folder / "cluster.db");
    REQUIRE(cluster);
  }
  CHECK(problem_of(folder / "newer.db")
            .find("schema version " + std::to_string(kSchemaVersion + 1) +
                  ", newer than this program (" + std::to_string(kSchemaVersion) + ")") !=
        std::string::npos);
  CHECK(ends_with(problem_of(folder / "other.db"), "is not a node.db"));
  CHECK(problem_of(folder / "cluster.db").find("is a cluster.db") != std::string::npos);
}

TEST_CASE("a file that was cut short says that it is damaged") {
  const TempFolder folder;
  {
    auto writer = make_node_db(folder / "node.db", "n1");
    for (int job = 1; job < 200; ++job) add_run(writer, {.job_id = job});
  }
  std::filesystem::resize_file(folder / "node.db", 5000);
  CHECK(problem_of(folder / "node.db").find("is damaged") != std::string::npos);
}

TEST_CASE("a name with characters of a URI is a name all the same") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "odd?#%41 name");
  { auto writer = make_node_db(folder / "odd?#%41 name/node.db", "n1"); }
  CHECK(open_source_db(folder / "odd?#%41 name/node.db"));
}
