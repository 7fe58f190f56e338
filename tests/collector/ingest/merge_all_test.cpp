#include "collector/ingest/merge_all.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::int64_t number(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE_MESSAGE(query, (query ? "" : query.error()));
  REQUIRE(query->step());
  return query->integer(0);
}

MergeOutcome merge_under(ClusterFixture& cluster, const TempFolder& nodes,
                         MergedFiles* known = nullptr) {
  MergeOutcome outcome;
  merge_path(cluster.db(), nodes.path(), outcome, known);
  return outcome;
}

}  // namespace

TEST_CASE("a file that did not change is left out, but it was looked at") {
  ClusterFixture cluster;
  const TempFolder nodes;
  auto node = make_node_db(nodes / "n1/node.db", "n1");
  add_run(node, {});
  MergedFiles known;
  CHECK(merge_under(cluster, nodes, &known).files == 1);
  run_sql(cluster.db(), "UPDATE source SET merged_ns = 1");
  const auto second = merge_under(cluster, nodes, &known);
  CHECK(second.files == 0);
  CHECK(second.unchanged == 1);
  CHECK(number(cluster.db(), "SELECT merged_ns FROM source") > 1);
  add_run(node, {.step = "1"});
  const auto third = merge_under(cluster, nodes, &known);
  CHECK(third.files == 1);
  CHECK(third.changed == 1);
}

TEST_CASE("a file that could not be read is tried again in each round") {
  ClusterFixture cluster;
  const TempFolder nodes;
  nodes.write("n1/node.db", "no database at all");
  MergedFiles known;
  CHECK(merge_under(cluster, nodes, &known).problems.size() == 1);
  CHECK(merge_under(cluster, nodes, &known).problems.size() == 1);
}

TEST_CASE("another database gets the files that the one before it had") {
  ClusterFixture first, second;
  const TempFolder nodes;
  auto node = make_node_db(nodes / "n1/node.db", "n1");
  add_run(node, {});
  MergedFiles known;
  CHECK(merge_under(first, nodes, &known).files == 1);
  CHECK(merge_under(second, nodes, &known).files == 1);
}

TEST_CASE("a file that went and came back is merged again") {
  ClusterFixture cluster;
  const TempFolder nodes;
  auto node = make_node_db(nodes / "n1/node.db", "n1");
  add_run(node, {});
  MergedFiles known;
  merge_under(cluster, nodes, &known);
  std::filesystem::rename(nodes / "n1", nodes / "away");
  std::filesystem::rename(nodes / "away/node.db", nodes / "away/other");
  CHECK(merge_under(cluster, nodes, &known).files == 0);
  std::filesystem::rename(nodes / "away/other", nodes / "away/node.db");
  std::filesystem::rename(nodes / "away", nodes / "n1");
  CHECK(merge_under(cluster, nodes, &known).files == 1);
}

TEST_CASE("without a memory every file is merged each time") {
  ClusterFixture cluster;
  const TempFolder nodes;
  auto node = make_node_db(nodes / "n1/node.db", "n1");
  add_run(node, {});
  CHECK(merge_under(cluster, nodes).files == 1);
  CHECK(merge_under(cluster, nodes).files == 1);
}

TEST_CASE("told to stop, no further file is begun") {
  ClusterFixture cluster;
  const TempFolder nodes;
  for (const std::string node : {"n1", "n2", "n3"}) {
    auto db = make_node_db(nodes / (node + "/node.db"), node);
    add_run(db, {.node = node});
  }
  MergeOutcome outcome;
  int asked = 0;
  merge_path(cluster.db(), nodes.path(), outcome, nullptr, [&] { return ++asked > 2; });
  CHECK(outcome.files == 2);
}

TEST_CASE("a path that is not there is a problem, an empty folder a warning") {
  ClusterFixture cluster;
  const TempFolder nodes;
  MergeOutcome outcome;
  merge_path(cluster.db(), "/nonexistent", outcome);
  merge_path(cluster.db(), nodes.path(), outcome);
  CHECK(says(outcome.problems, "/nonexistent"));
  CHECK(says(outcome.warnings, "nothing to merge"));
  CHECK(sentence_of(outcome) ==
        "0 files, 0 runs, 0 of them new or with news, 0 rows written, 0 records of jobs");
}
