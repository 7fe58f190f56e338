#include "collector/ingest/merge.h"

#include <doctest/doctest.h>

#include "common/note.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// All tables but the time of merging, as text.
std::string dump(Database& db) {
  std::string out;
  for (const std::string table : {"run", "task", "sample", "phase", "value", "attribute", "notice",
                                  "counter", "job", "allocation", "allocation_node", "source"}) {
    auto rows = db.prepare("SELECT * FROM " + table);
    REQUIRE(rows);
    while (rows->step()) {
      out += table;
      for (int i = 0; i < 50; ++i) {
        if (table == "source" && i == 2) continue;  // merged_ns
        out += "|" + rows->maybe_text(i).value_or("NULL");
      }
      out += "\n";
    }
    REQUIRE(rows->status());
  }
  return out;
}

std::int64_t count(Database& db, const std::string& sql) {
  auto query = db.prepare("SELECT count(*) FROM " + sql);
  REQUIRE_MESSAGE(query, (query ? "" : query.error()));
  REQUIRE(query->step());
  return query->integer(0);
}

std::string text(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE(query);
  return query->step() ? query->maybe_text(0).value_or("NULL") : "no row";
}

MergeCount merge(Database& cluster, const std::string& path) {
  auto merged = merge_file(cluster, {SourceFile::Kind::kNodeDb, path}, 1);
  REQUIRE_MESSAGE(merged, (merged ? "" : merged.error()));
  return *merged;
}

/// One run with something in every table.
std::int64_t full_run(Database& node, const RunSpec& spec) {
  const auto run = add_run(node, spec);
  add_samples(node, run, spec.begin_s, spec.begin_s + 5, 1);
  add_phase(node, run,
            {.path = "solve", .begin_s = spec.begin_s + 1, .end_s = spec.begin_s + 4, .cpu_s = 3});
  const auto id = std::to_string(run);
  run_sql(node, "INSERT INTO task(run_id, task, pid) VALUES(" + id + ", 0, 42)");
  run_sql(node, "INSERT INTO value VALUES(" + id + ", 5, 0, 'solve', 'residual', 0.5)");
  run_sql(node, "INSERT INTO attribute VALUES(" + id + ", 0, 'solve', 'cells', '1e6')");
  run_sql(node, "INSERT INTO counter VALUES(" + id +
                    ", 'task', 0, 'solve', 1, 'PAPI_TOT_INS', 1000000, NULL, NULL)");
  run_sql(node, "INSERT INTO notice VALUES(" + id + ", 'c1', " + std::to_string(spec.job_id) +
                    ", 0, '0', '" + spec.node + "', " + std::to_string(at(spec.begin_s)) +
                    ", 'gap', 'no samples')");
  return run;
}

}  // namespace

TEST_CASE("everything that a node recorded is merged") {
  ClusterFixture cluster;
  auto node = make_node_db(cluster.folder() / "n1/node.db", "n1");
  full_run(node, {});
  const auto merged = merge(cluster.db(), cluster.folder() / "n1/node.db");
  CHECK(merged.runs == 1);
  CHECK(merged.changed == 1);
  for (const char* table : {"run", "task", "phase", "value", "attribute", "notice", "counter"}) {
    CHECK_MESSAGE(count(cluster.db(), table) == 1, table);
  }
  CHECK(count(cluster.db(), "sample") == 6);
  CHECK(text(cluster.db(), "SELECT node FROM source") == "n1");
  CHECK(text(cluster.db(), "SELECT problem FROM source") == "NULL");
}

TEST_CASE("a node.db of version 1 is merged, and has no counters") {
  ClusterFixture cluster;
  {
    auto node = make_node_db(cluster.folder() / "n1/node.db", "n1");
    full_run(node, {});
    for (const char* column : {"counter_source", "counter_reason", "counter_refused"}) {
      run_sql(node, std::string("ALTER TABLE run DROP COLUMN ") + column);
    }
    run_sql(node, "DROP TABLE counter");
    REQUIRE(node.set_user_version(1));
  }
  CHECK(merge(cluster.db(), cluster.folder() / "n1/node.db").changed == 1);
  CHECK(count(cluster.db(), "phase") == 1);
  CHECK(count(cluster.db(), "counter") == 0);
  CHECK(text(cluster.db(), "SELECT counter_source FROM run") == "NULL");
}

TEST_CASE("merging the same file twice changes nothing") {
  ClusterFixture cluster;
  auto node = make_node_db(cluster.folder() / "n1/node.db", "n1");
  full_run(node, {});
  full_run(node, {.job_id = 124, .end_s = std::nullopt, .last_s = 6});  // still going
  merge(cluster.db(), cluster.folder() / "n1/node.db");
  const std::string before = dump(cluster.db());
  const auto again = merge(cluster.db(), cluster.folder() / "n1/node.db");
  CHECK(dump(cluster.db()) == before);
  CHECK(again.runs == 2);
  CHECK(again.changed == 1);  // what has ended is not looked at again
  CHECK(again.rows == 4);     // the open run's task, phase, attribute and counter, as they were
}

TEST_CASE("two nodes that use the same run id keep their own rows") {
  ClusterFixture cluster;
  auto first = make_node_db(cluster.folder() / "n1/node.db", "n1");
  auto second = make_node_db(cluster.folder() / "n2/node.db", "n2");
  CHECK(full_run(first, {}) == full_run(second, {.node = "n2"}));
  merge(cluster.db(), cluster.folder() / "n1/node.db");
  merge(cluster.db(), cluster.folder() / "n2/node.db");
  CHECK(count(cluster.db(), "run") == 2);
  CHECK(count(cluster.db(), "sample WHERE run_id = 1") == 6);
  CHECK(count(cluster.db(), "sample WHERE run_id = 2") == 6);
}

TEST_CASE("the same run in two files is one run") {
  ClusterFixture cluster;
  {
    auto node = make_node_db(cluster.folder() / "n1/node.db", "n1");
    full_run(node, {});
  }
  std::filesystem::create_directories(cluster.folder() / "copy");
  std::filesystem::copy(cluster.folder() / "n1/node.db", cluster.folder() / "copy/node.db");
  merge(cluster.db(), cluster.folder() / "n1/node.db");
  merge(cluster.db(), cluster.folder() / "copy/node.db");
  CHECK(count(cluster.db(), "run") == 1);
  CHECK(count(cluster.db(), "sample") == 6);
}

TEST_CASE("runs of one job id at different times are different runs") {
  ClusterFixture cluster;
  auto node = make_node_db(cluster.folder() / "n1/node.db", "n1");
  full_run(node, {});
  full_run(node, {.begin_s = 5000, .end_s = 5010});                    // the id was used again
  full_run(node, {.restart_count = 1, .begin_s = 100, .end_s = 110});  // requeued
  merge(cluster.db(), cluster.folder() / "n1/node.db");
  CHECK(count(cluster.db(), "run") == 3);
}

TEST_CASE("a run that was still going is brought up to date") {
  ClusterFixture cluster;
  const std::string path = cluster.folder() / "n1/node.db";
  auto node = make_node_db(path, "n1");
  const auto run = add_run(node, {.end_s = std::nullopt, .last_s = 4});
  add_sample(node, run, 1, 5, 5);
  add_phase(node, run, {.path = "solve", .begin_s = 1});
  merge(cluster.db(), path);
  CHECK(text(cluster.db(), "SELECT end_ns FROM run") == "NULL");

  add_sample(node, run, 2, 6, 6);
  run_sql(node, "UPDATE phase SET end_ns = begin_ns + 5");
  run_sql(node, "UPDATE run SET end_ns = " + std::to_string(at(9)) +
                    ", last_ns = " + std::to_string(at(9)));
  merge(cluster.db(), path);
  CHECK(count(cluster.db(), "run") == 1);
  CHECK(count(cluster.db(), "sample") == 2);
  CHECK(text(cluster.db(), "SELECT end_ns FROM run") == std::to_string(at(9)));
  CHECK(text(cluster.db(), "SELECT end_ns - begin_ns FROM phase") == "5");
}

TEST_CASE("rows that a node gave up meanwhile are kept") {
  ClusterFixture cluster;
  const std::string path = cluster.folder() / "n1/node.db";
  auto node = make_node_db(path, "n1");
  full_run(node, {});
  const auto going = full_run(node, {.job_id = 124, .end_s = std::nullopt, .last_s = 6});
  merge(cluster.db(), path);
  run_sql(node, "DELETE FROM sample");
  run_sql(node, "DELETE FROM run WHERE job_id = 123");
  run_sql(node, "UPDATE run SET last_ns = last_ns + 1");
  add_sample(node, going, 7, 1, 1);
  run_sql(node, "INSERT INTO meta VALUES('rows_deleted', '12')");
  merge(cluster.db(), path);
  CHECK(count(cluster.db(), "run") == 2);
  CHECK(count(cluster.db(), "sample") == 13);
  CHECK(text(cluster.db(), "SELECT rows_deleted FROM source") == "12");
}

TEST_CASE("an older copy never undoes what a newer one said") {
  for (const std::string news : {"end_ns = last_ns", "last_ns = last_ns + 5",
                                 "last_ns = last_ns + 5, end_ns = last_ns + 5"}) {
    ClusterFixture cluster;
    const std::string path = cluster.folder() / "n1/node.db";
    const std::string old = cluster.folder() / "old/node.db";
    std::filesystem::create_directories(cluster.folder() / "old");
    {
      auto node = make_node_db(path, "n1");
      const auto run = add_run(node, {.end_s = std::nullopt, .last_s = 4});
      add_phase(node, run, {.path = "solve", .begin_s = 1});
    }
    std::filesystem::copy(path, old);
    {
      auto node = Database::open(path, Database::Mode::kReadWrite);
      run_sql(*node, "UPDATE phase SET end_ns = begin_ns + 5");
      run_sql(*node, "UPDATE run SET " + news);
    }
    merge(cluster.db(), path);
    const std::string before = dump(cluster.db());
    merge(cluster.db(), old);
    run_sql(cluster.db(), "DELETE FROM source WHERE path LIKE '%/old/%'");
    CHECK(dump(cluster.db()) == before);
  }
}

TEST_CASE("a damaged file is recorded with its problem, and leaves nothing half merged") {
  ClusterFixture cluster;
  const std::string path = cluster.folder() / "n1/node.db";
  {
    auto node = make_node_db(path, "n1");
    for (int job = 1; job <= 50; ++job) full_run(node, {.job_id = job});
  }
  {  // overwrite pages in the middle: the header and the schema stay whole
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8 * 4096);
    const std::string rubbish(static_cast<std::size_t>(std::filesystem::file_size(path)) - 9 * 4096,
                              'x');
    file << rubbish;
  }
  const auto merged = merge_file(cluster.db(), {SourceFile::Kind::kNodeDb, path}, 1);
  REQUIRE_FALSE(merged);
  CHECK(merged.error().find('\n') == std::string::npos);
  CHECK(count(cluster.db(), "run") == 0);
  CHECK(count(cluster.db(), "sample") == 0);
  CHECK(text(cluster.db(), "SELECT problem FROM source") == merged.error());
}

TEST_CASE("a file that could not be read once is read when it is well again") {
  ClusterFixture cluster;
  const std::string path = cluster.folder().write("n1/node.db", "");
  CHECK_FALSE(merge_file(cluster.db(), {SourceFile::Kind::kNodeDb, path}, 1));
  std::filesystem::remove(path);
  auto node = make_node_db(path, "n1");
  full_run(node, {});
  merge(cluster.db(), path);
  CHECK(text(cluster.db(), "SELECT problem FROM source") == "NULL");
}

TEST_CASE("a file of a version with fewer columns is merged, with NULL for the others") {
  ClusterFixture cluster;
  const std::string path = cluster.folder() / "n1/node.db";
  {
    auto node = make_node_db(path, "n1");
    full_run(node, {});
    run_sql(node, "ALTER TABLE phase DROP COLUMN edge_lag_ns");
    run_sql(node, "ALTER TABLE run DROP COLUMN recorder_rss_bytes");
    run_sql(node, "ALTER TABLE run ADD COLUMN of_the_future TEXT");
  }
  merge(cluster.db(), path);
  CHECK(text(cluster.db(), "SELECT edge_lag_ns FROM phase") == "NULL");
  CHECK(count(cluster.db(), "run") == 1);
}

TEST_CASE("a note becomes a notice, once, also when it comes by node.db later") {
  ClusterFixture cluster;
  const std::string run_dir = cluster.folder() / "run";
  const sphase_note note = {"c1", 123, 0, "0", "n3", "not-active", "no recorder\nwas found"};
  REQUIRE(sphase_note_write(run_dir.c_str(), &note) == 0);
  const auto found = find_sources(run_dir);
  REQUIRE(found);
  REQUIRE(found->size() == 1);
  for (int i = 0; i < 2; ++i) REQUIRE(merge_file(cluster.db(), found->front(), 1));
  CHECK(count(cluster.db(), "notice") == 1);
  CHECK(text(cluster.db(), "SELECT text FROM notice") == "no recorder was found");
  // The recorder moves notes into node.db.
  auto node = make_node_db(cluster.folder() / "n3/node.db", "n3");
  run_sql(node, "INSERT INTO notice VALUES(NULL,'c1',123,0,'0','n3'," +
                    text(cluster.db(), "SELECT time_ns FROM notice") +
                    ",'not-active','no recorder was found')");
  merge(cluster.db(), cluster.folder() / "n3/node.db");
  CHECK(count(cluster.db(), "notice") == 1);
}

TEST_CASE("a note that is cut short is told and recorded") {
  ClusterFixture cluster;
  const auto path = cluster.folder().write("notes/1.note", "cluster=c1\njob_id=12");
  const auto merged = merge_file(cluster.db(), {SourceFile::Kind::kNote, path}, 1);
  REQUIRE_FALSE(merged);
  CHECK(text(cluster.db(), "SELECT problem FROM source").find("not a note") != std::string::npos);
}

TEST_CASE("a file of a recorder that does not name its node is known by its runs") {
  ClusterFixture cluster;
  const std::string path = cluster.folder() / "n1/node.db";
  auto node = make_node_db(path, "n1");
  run_sql(node, "DELETE FROM meta");
  full_run(node, {.node = "n7"});
  merge(cluster.db(), path);
  CHECK(text(cluster.db(), "SELECT node FROM source") == "n7");
}
