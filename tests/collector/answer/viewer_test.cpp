#include "collector/answer/viewer.h"

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

const Viewer kAlice{1000, false}, kBob{1001, false}, kOperator{500, true};

bool sees(const Viewer& viewer, Database& db, const std::string& job) {
  const auto seen = seen_by(viewer, db, job);
  REQUIRE_MESSAGE(seen, (seen ? "" : seen.error()));
  return seen->has_value();
}

}  // namespace

TEST_CASE("root and whom the site trusts are operators, nobody else is") {
  CHECK(viewer_of(0, {}).is_operator);
  CHECK(viewer_of(64, {0, 64}).is_operator);
  CHECK(!viewer_of(1000, {0, 64}).is_operator);
}

TEST_CASE("a job is seen by its owner and by operators") {
  JobFacts job;
  job.uid = 1000;
  CHECK(may_see(kAlice, job));
  CHECK(!may_see(kBob, job));
  CHECK(may_see(kOperator, job));
}

TEST_CASE("a job of which nobody knows the owner is for operators alone") {
  CHECK(!may_see({0, false}, JobFacts()));
  CHECK(may_see(kOperator, JobFacts()));
}

TEST_CASE("another user's job is as unknown as one that is not there") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.job_id = 7});  // of alice, 1000
  add_run(cluster.db(), {.job_id = 8, .uid = 1001});
  add_notice(cluster.db(), "n1", "not-active", "x", "0", 9);
  CHECK(sees(kAlice, cluster.db(), "7"));
  CHECK(!sees(kBob, cluster.db(), "7"));
  CHECK(!sees(kAlice, cluster.db(), "8"));
  CHECK(sees(kBob, cluster.db(), "8"));
  CHECK(!sees(kBob, cluster.db(), "9"));
  CHECK(!sees(kBob, cluster.db(), "10"));
  for (const char* job : {"7", "8", "9"}) CHECK(sees(kOperator, cluster.db(), job));
  for (const char* job : {"10", "", "x", "7;", "7 OR 1=1"}) {
    CAPTURE(job);
    CHECK(!sees(kOperator, cluster.db(), job));
  }
}

TEST_CASE("tasks of another user's array are not told of") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.job_id = 20, .array_job_id = 20, .array_task_id = 1});
  add_job(cluster.db(), {.job_id = 21, .array_job_id = 20, .array_task_id = 2});
  CHECK(!sees(kBob, cluster.db(), "20"));
  const auto own = seen_by(kAlice, cluster.db(), "20");
  REQUIRE(own);
  REQUIRE(*own);
  CHECK((*own)->problem.find("choose a task") != std::string::npos);
  CHECK(sees(kAlice, cluster.db(), "20_2"));
}

TEST_CASE("of a number that was used again only one's own starts are shown") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.job_id = 7});
  add_job(cluster.db(), {.job_id = 7, .submit_s = 500, .begin_s = 500, .end_s = 510});
  run_sql(cluster.db(),
          "UPDATE job SET uid = 1001 WHERE submit_time > " + std::to_string(kStartS + 100));
  CHECK(!sees(kAlice, cluster.db(), "7"));
  const auto seen = seen_by(kBob, cluster.db(), "7");
  REQUIRE(seen);
  REQUIRE(*seen);
  for (const auto& start : (*seen)->starts) CHECK(start.job.uid == 1001);
}
