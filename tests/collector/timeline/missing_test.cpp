#include "collector/timeline/missing.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// Step 0 had two nodes, n1 and n2 of the allocation; n1 alone told something.
void half_a_step(ClusterFixture& cluster, const std::vector<std::string>& nodes = {"n1", "n2"}) {
  const JobSpec job;
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, nodes, 0, 10);
  const auto run = add_run(cluster.db(), {.begin_s = 1, .end_s = 9, .step_nodes = 2});
  add_samples(cluster.db(), run, 1, 9, 1);
}

}  // namespace

TEST_CASE("asked for but not active: the node and the reason are told") {
  ClusterFixture cluster;
  half_a_step(cluster);
  add_notice(cluster.db(), "n2", "not-active", "sphase-recorder is not installed");
  const auto missing = cluster.load("123").front().missing;
  CHECK(says(missing,
             "requested but not active on n2, step 0, because: sphase-recorder is not installed"));
  CHECK_FALSE(says(missing, "no note why"));
}

TEST_CASE("a node that told nothing, without a note, is deduced from the step's other nodes") {
  ClusterFixture cluster;
  half_a_step(cluster);
  CHECK(says(cluster.load("123").front().missing,
             "no telemetry from n2 and no note why, step 0: is the plugin installed there"));
}

TEST_CASE("where it cannot be told which nodes are missing, their number is") {
  ClusterFixture cluster;
  half_a_step(cluster, {"n1", "n2", "n3"});
  CHECK(says(cluster.load("123").front().missing, "no telemetry from 1 of the 2 nodes of step 0"));
}

TEST_CASE("sentences that differ in their node alone are one") {
  ClusterFixture cluster;
  for (const char* node : {"n1", "n2", "n3"}) {
    add_run(cluster.db(), {.node = node, .io_source = {}, .io_reason = "/proc is hidden"});
  }
  const auto missing = cluster.load("123").front().missing;
  CHECK(says(missing, "no I/O on n[1-3]: /proc is hidden"));
}

TEST_CASE("markers that were dropped are counted") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.markers_dropped = 7});
  CHECK(says(cluster.load("123").front().missing, "7 of 7 markers because the ring was full"));
}

TEST_CASE("late edges are told with the worst of them") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_phase(cluster.db(), run, {.path = "a", .begin_s = 1, .end_s = 2, .flags = kLate});
  run_sql(cluster.db(), "UPDATE phase SET edge_lag_ns = 12500000");
  CHECK(
      says(cluster.load("123").front().missing, "1 phase edges were read late, the worst by 12.5"));
}

TEST_CASE("a job that the records do not know says so, and so does one without telemetry") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  CHECK(says(cluster.load("123").front().missing, "slurmctld and slurmdbd were not asked"));
  ClusterFixture other;
  add_job(other.db(), {});
  CHECK(says(other.load("123").front().missing, "nothing was recorded"));
  add_notice(other.db(), "n1", "not-active", "there is a reason");
  CHECK_FALSE(says(other.load("123").front().missing, "nothing was recorded"));
}

TEST_CASE("rows that a node gave up, and a file set aside, are told for the job's nodes alone") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  run_sql(cluster.db(), "INSERT INTO source VALUES('/a', 'n1', 1, 1, 5, NULL, NULL)");
  run_sql(cluster.db(), "INSERT INTO source VALUES('/b', 'n9', 1, 1, 9, NULL, NULL)");
  run_sql(cluster.db(), "INSERT INTO source VALUES('/c', 'n1', 1, 1, NULL, '/x.damaged', NULL)");
  const auto missing = cluster.load("123").front().missing;
  CHECK(says(missing, "n1 gave up 5 old rows"));
  CHECK(says(missing, "/x.damaged"));
  CHECK_FALSE(says(missing, "n9"));
}

TEST_CASE("suspended time that no look saw is told, what was seen is not") {
  ClusterFixture cluster;
  half_a_step(cluster);
  run_sql(cluster.db(), "UPDATE job SET suspended_s = 5");
  CHECK(says(cluster.load("123").front().missing, "suspended for 5 s at times that nobody looked"));
  run_sql(cluster.db(),
          "INSERT INTO suspension SELECT cluster, job_id, submit_time, restart_count,"
          " start_time + 2, start_time + 6 FROM job");
  CHECK_FALSE(says(cluster.load("123").front().missing, "suspended"));
}
