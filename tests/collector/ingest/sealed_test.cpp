// What the recorder sealed, merged: the same rows as if they had stayed raw.
#include <doctest/doctest.h>

#include "collector/ingest/merge.h"
#include "collector/ingest/store.h"
#include "spank/recorder/store/seal.h"
#include "tests/collector/ingest/stored_dump.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::size_t count(ClusterFixture& cluster, const std::string& table) {
  return rows(cluster.db(), table).size();
}

std::size_t count(ClusterFixture& cluster, const std::string& table, const std::string& column,
                  const std::string& value) {
  std::size_t same = 0;
  for (auto& [key, row] : rows(cluster.db(), table)) same += row[column] == value ? 1 : 0;
  return same;
}

/// A node.db with one run of 100 s, 101 samples, 60 phases and their counters.
class Node {
 public:
  explicit Node(const std::string& path, bool going = false)
      : path_(path), db_(make_node_db(path, "n1")) {
    RunSpec spec;
    spec.end_s = going ? std::nullopt : std::optional(100.0);
    spec.last_s = 100;
    run_ = add_run(db_, spec);
    run_sql(db_, "BEGIN");
    add_samples(db_, run_, 0, 100, 1);
    for (int i = 1; i <= 60; ++i) {
      add_phase(
          db_, run_,
          {.path = "solve", .begin_s = i * 1.0, .end_s = i + 0.5, .cpu_s = 0.25, .number = i});
      run_sql(db_, "INSERT INTO counter VALUES(" + std::to_string(run_) + ", 'task', 0, 'solve', " +
                       std::to_string(i) + ", 'PAPI_TOT_INS', " + std::to_string(i * 1000) +
                       ", NULL, NULL)");
    }
    run_sql(db_, "COMMIT");
  }
  /// As at the end of the run: all raw rows.
  void seal() {
    const auto sealed = sealer_.seal(db_, {run_, true, at(100)});
    REQUIRE_MESSAGE(sealed, (sealed ? "" : sealed.error()));
  }
  Database& db() { return db_; }
  std::int64_t run() const { return run_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Database db_;
  std::int64_t run_ = 0;
  Sealer sealer_;
};

MergeCount merge(ClusterFixture& cluster, const std::string& path) {
  auto merged = merge_file(cluster.db(), {SourceFile::Kind::kNodeDb, path}, 1);
  REQUIRE_MESSAGE(merged, (merged ? "" : merged.error()));
  return *merged;
}

/// What a cluster.db has that was made of the raw rows.
std::string dump_of_raw() {
  ClusterFixture cluster;
  const Node node(cluster.folder() / "n1/node.db");
  merge(cluster, node.path());
  return dump_sealed(cluster.db());
}

}  // namespace

TEST_CASE("sealed rows are merged as if they were raw") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db");
  node.seal();
  REQUIRE(number(node.db(), "SELECT count(*) FROM sample") == 0);
  const auto merged = merge(cluster, node.path());
  CHECK(dump_sealed(cluster.db()) == dump_of_raw());
  CHECK(merged.rows == 101 + 60 + 60);
  CHECK(merged.warning == "");
}

TEST_CASE("sealed rows and a raw tail are merged together") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db");
  node.seal();
  add_sample(node.db(), node.run(), 101, 7, 8);
  add_phase(node.db(), node.run(), {.path = "write", .begin_s = 99, .end_s = 100});
  merge(cluster, node.path());
  CHECK(count(cluster, "sample") == 102);
  CHECK(count(cluster, "phase") == 61);
}

TEST_CASE("sealed rows that were merged are not read again, and nothing comes twice") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db", true);
  merge(cluster, node.path());
  node.seal();
  run_sql(node.db(), "UPDATE run SET last_ns = last_ns + 1");
  merge(cluster, node.path());
  const std::string before = dump_sealed(cluster.db());
  CHECK(count(cluster, "sample") == 101);
  // What is merged already may even become unreadable.
  run_sql(node.db(), "UPDATE segment SET data = x'00'");
  run_sql(node.db(), "UPDATE run SET last_ns = last_ns + 1");
  const auto again = merge(cluster, node.path());
  CHECK(again.warning == "");
  CHECK(again.rows == 0);
  CHECK(dump_sealed(cluster.db()) == before);
}

TEST_CASE("the same sealed rows in a copy of the file are one") {
  ClusterFixture cluster;
  {
    Node node(cluster.folder() / "n1/node.db", true);
    node.seal();
  }
  std::filesystem::create_directories(cluster.folder() / "copy");
  std::filesystem::copy(cluster.folder() / "n1/node.db", cluster.folder() / "copy/node.db");
  merge(cluster, cluster.folder() / "n1/node.db");
  CHECK(merge(cluster, cluster.folder() / "copy/node.db").rows == 0);
  CHECK(dump_sealed(cluster.db()) == dump_of_raw());
}

TEST_CASE(
    "of a phase that was reopened the newest row wins: the raw one, then the last sealed one") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db", true);
  node.seal();
  for (int i = 1; i <= 20; ++i) {
    add_phase(node.db(), node.run(),
              {.path = "solve", .begin_s = i * 1.0, .end_s = i + 0.9, .number = i, .count = 2});
  }
  const auto twice = [](ClusterFixture& of) { return count(of, "phase", "count", "2"); };
  merge(cluster, node.path());
  CHECK(count(cluster, "phase") == 60);
  CHECK(twice(cluster) == 20);
  node.seal();
  ClusterFixture other;
  merge(other, node.path());
  CHECK(count(other, "phase") == 60);
  CHECK(twice(other) == 20);
}

TEST_CASE("an older copy with sealed rows never undoes what a newer one said") {
  ClusterFixture cluster;
  const std::string old = cluster.folder() / "old/node.db";
  Node node(cluster.folder() / "n1/node.db", true);
  node.seal();
  run_sql(node.db(), "PRAGMA wal_checkpoint(TRUNCATE)");
  std::filesystem::create_directories(cluster.folder() / "old");
  std::filesystem::copy(node.path(), old);
  {  // another file of the same run: its segments are others
    auto copy = Database::open(old, Database::Mode::kReadWrite);
    REQUIRE(copy);
    run_sql(*copy, "UPDATE segment SET sealed_ns = sealed_ns + 1000");
  }
  add_phase(node.db(), node.run(),
            {.path = "solve", .begin_s = 1, .end_s = 1.9, .number = 1, .count = 2});
  run_sql(node.db(), "UPDATE run SET last_ns = last_ns + 1");
  merge(cluster, node.path());
  const std::string before = dump_sealed(cluster.db());
  merge(cluster, old);
  CHECK(dump_sealed(cluster.db()) == before);
  CHECK(count(cluster, "phase", "count", "2") == 1);
}

TEST_CASE("a segment that cannot be read is told, and all other rows come in") {
  for (const std::string data : {"x'00'", "x''", "substr(data, 1, length(data) - 3)",
                                 "zeroblob(20000000)", "'text'", "CAST(x'0102' AS BLOB)"}) {
    CAPTURE(data);
    ClusterFixture cluster;
    Node node(cluster.folder() / "n1/node.db");
    node.seal();
    run_sql(node.db(), "UPDATE segment SET data = " + data + " WHERE source = 'phase'");
    const auto merged = merge(cluster, node.path());
    CHECK(merged.warning.find("rows of table phase are missing: a segment ") != std::string::npos);
    CHECK(merged.warning.find('\n') == std::string::npos);
    CHECK(text(cluster.db(), "SELECT problem FROM source") == merged.warning);
    CHECK(text(cluster.db(), "SELECT text FROM notice WHERE code = 'damaged-rows'")
              .find("rows of table phase are missing") == 0);
    CHECK(count(cluster, "sample") == 101);
    CHECK(count(cluster, "counter") == 60);
    CHECK(count(cluster, "phase") == 0);
    CHECK(number(cluster.db(), "SELECT count(*) FROM segment") == 2);
  }
}

TEST_CASE("a stored segment that is damaged later costs its own rows, and the report says so") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db");
  node.seal();
  merge(cluster, node.path());
  run_sql(cluster.db(), "UPDATE segment SET data = x'00' WHERE source = 'phase'");
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.runs.front().phases.empty());
  CHECK(timeline.runs.front().samples.samples().size() == 101);
  CHECK(says(timeline.missing, "some stored rows of step 0 are damaged and missing: n1"));
}

TEST_CASE("a segment whose rows the table refuses is told like a damaged one") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db");
  Segment segment;
  SegmentColumn column("path");
  column.add_null();  // NULL where it must not be
  segment.columns.push_back(column);
  const auto bytes = encode_segment(segment);
  REQUIRE(bytes);
  auto insert = node.db().prepare("INSERT INTO segment VALUES(9, 1, 'phase', 5, 1, ?)");
  REQUIRE(insert);
  REQUIRE(insert->bind_blob(1, *bytes).run());
  const auto merged = merge(cluster, node.path());
  CHECK(merged.warning.find("could not be read: it has no rows of it") != std::string::npos);
  CHECK(dump_sealed(cluster.db()) == dump_of_raw());
}

TEST_CASE("columns that only one side has do not matter in a segment") {
  ClusterFixture cluster;
  Node node(cluster.folder() / "n1/node.db");
  run_sql(node.db(), "ALTER TABLE phase DROP COLUMN edge_lag_ns");
  run_sql(node.db(), "ALTER TABLE phase ADD COLUMN of_the_future TEXT");
  node.seal();
  merge(cluster, node.path());
  CHECK(count(cluster, "phase", "of_the_future", "NULL") == 60);  // kept, for who knows it
  CHECK(cluster.load("123").front().runs.front().phases.front().edge_lag_ns == std::nullopt);
  CHECK(count(cluster, "phase", "cpu_time_ns", "250000000") == 60);
}
