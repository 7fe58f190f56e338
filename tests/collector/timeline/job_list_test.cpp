#include "collector/timeline/job_list.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("every start is a line, oldest first, with what was recorded of it") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.job_id = 7, .begin_s = 500, .end_s = 510});
  add_run(cluster.db(), {.begin_s = 5, .end_s = 20, .step = "batch"});
  const auto run = add_run(cluster.db(), {.begin_s = 6, .end_s = 19});
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 7, .end_s = 8});
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 9, .end_s = 10, .number = 2});
  run_sql(cluster.db(), "INSERT INTO phase_path SELECT DISTINCT run_id, path FROM phase");
  add_run(cluster.db(), {.begin_s = 6, .end_s = 19, .node = "n2"});
  add_notice(cluster.db(), "n1", "not-active", "x", "0", 99);
  const auto lines = list_jobs(cluster.db(), "");
  REQUIRE(lines);
  REQUIRE(lines->size() == 3);
  CHECK((*lines)[0].job.job_id == 123);
  CHECK((*lines)[0].begin_ns == at(5));
  CHECK((*lines)[0].end_ns == at(20));
  CHECK((*lines)[0].nodes == 2);
  CHECK((*lines)[0].steps == 2);
  CHECK((*lines)[0].phases == 1);
  CHECK((*lines)[1].job.job_id == 7);
  CHECK((*lines)[1].steps == 0);
  CHECK((*lines)[2].job.job_id == 99);  // only a notice
}

TEST_CASE("a user is asked for by name or by number") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.job_id = 7});               // of alice, 1000
  add_run(cluster.db(), {.job_id = 8, .uid = 1000});  // nobody knows her name
  add_run(cluster.db(), {.job_id = 9, .uid = 0});
  CHECK(list_jobs(cluster.db(), "1000")->size() == 2);
  CHECK(list_jobs(cluster.db(), "alice")->size() >= 1);
  CHECK(list_jobs(cluster.db(), "root")->size() == 1);
  CHECK(list_jobs(cluster.db(), "nobody-of-that-name")->empty());
}
