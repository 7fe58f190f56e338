// Clocks of nodes that are apart: sources collector/timeline/node_clocks.cpp and run_load.cpp.
#include "collector/timeline/node_clocks.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

void add_clock(Database& db, const std::string& node, double time_s, double offset_s,
               double band_s) {
  auto insert = db.prepare("INSERT INTO node_clock VALUES(?,?,?,?)");
  REQUIRE(insert);
  insert->bind(1, node).bind(2, at(time_s)).bind(3, ns(offset_s)).bind(4, ns(band_s));
  REQUIRE(insert->run());
}

/// One step on two nodes that do the same at the same moment; their clocks say otherwise.
void two_nodes_apart(ClusterFixture& cluster, double offset_s) {
  add_clock(cluster.db(), "n1", 0, offset_s, 0.0005);
  add_clock(cluster.db(), "n2", 0, -offset_s, 0.0005);
  for (const auto& [node, off] : {std::pair{"n1", offset_s}, {"n2", -offset_s}}) {
    const auto run = add_run(cluster.db(), {.begin_s = 10 + off, .end_s = 20 + off, .node = node});
    add_samples(cluster.db(), run, 10 + off, 20 + off, 1);
    add_phase(cluster.db(), run, {.path = "solve", .begin_s = 12 + off, .end_s = 18 + off});
  }
}

}  // namespace

TEST_CASE("nodes whose clocks are two seconds apart are aligned within the band") {
  for (const double offset_s : {2.0, -2.0}) {
    CAPTURE(offset_s);
    ClusterFixture cluster;
    two_nodes_apart(cluster, offset_s);
    const auto timeline = cluster.load("123").front();
    REQUIRE(timeline.runs.size() == 2);
    for (const auto& run : timeline.runs) {
      CHECK(run.begin_ns == at(10));
      CHECK(run.end_ns == at(20));
      CHECK(run.phases.front().begin_ns == at(12));
      CHECK(run.phases.front().end_ns == at(18));
      CHECK(run.samples.samples().front().time_ns == at(10));
    }
    REQUIRE(timeline.clocks.size() == 2);
    CHECK(timeline.clocks[0].node == "n1");
    CHECK(timeline.clocks[0].offset_ns == ns(offset_s));
    CHECK(timeline.clocks[0].band_ns == ns(0.0005));
    CHECK(says(timeline.missing, "the clock of n1 was 2.000 s"));
  }
}

TEST_CASE("an offset that may as well be none changes nothing") {
  ClusterFixture cluster;
  add_clock(cluster.db(), "n1", 0, 0.0004, 0.0005);
  add_run(cluster.db(), {.begin_s = 10, .end_s = 20});
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.runs.front().begin_ns == at(10));
  CHECK(timeline.clocks.size() == 1);
  CHECK_FALSE(says(timeline.missing, "clock"));
}

TEST_CASE("the offset is that of the time when the run began") {
  ClusterFixture cluster;
  add_clock(cluster.db(), "n1", 5, 1, 0.001);
  add_clock(cluster.db(), "n1", 15, 3, 0.001);  // somebody set the clock while it ran
  add_run(cluster.db(), {.begin_s = 11, .end_s = 21});
  add_run(cluster.db(), {.job_id = 124, .begin_s = 2, .end_s = 3});  // before any was measured
  CHECK(cluster.load("123").front().runs.front().begin_ns == at(10));
  CHECK(cluster.load("124").front().runs.front().begin_ns == at(1));
}

TEST_CASE("of a node that only ships the last word counts for what is lost") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.begin_s = 0, .end_s = std::nullopt, .last_s = 10});
  run_sql(cluster.db(),
          "INSERT INTO shipper VALUES('n1', 'f', 1, " + std::to_string(at(20)) + ", NULL, NULL)");
  CHECK_FALSE(cluster.load("123").front().runs.front().lost);
  run_sql(cluster.db(),
          "UPDATE shipper SET seen_ns = " + std::to_string(at(1000)) + ", rows_deleted = 7");
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.runs.front().lost);
  CHECK(says(timeline.missing, "n1 gave up 7 old rows"));
}
