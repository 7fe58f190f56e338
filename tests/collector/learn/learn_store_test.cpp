#include "collector/learn/learn_store.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

ObservedJob job_of(std::int64_t id, const std::string& profile = "1000/p") {
  ObservedJob job;
  job.profile = profile;
  job.cluster = "c1";
  job.job_id = id;
  job.submit_s = kStartS + id;
  job.start_s = kStartS + id;
  job.end_s = kStartS + id + 10;
  job.name = "solver" + std::to_string(id);
  job.partition = "debug";
  Observation whole;
  whole.nodes = whole.nodes_used = 2;
  whole.duration_s = 10.5;
  Observation solve = whole;
  solve.path = "solve";
  solve.tasks = 4;
  solve.cpu_time_s = 20.25;
  solve.cpus_busy = 1.5;
  solve.memory_peak_bytes = 7 * kMiB;
  solve.memory_limit_bytes = 9 * kMiB;
  solve.flags = kObservedOom | kObservedUnclosed;
  job.phases = {whole, solve};
  return job;
}

std::vector<ObservedJob> load(ClusterFixture& cluster, const std::string& profile = "1000/p",
                              std::int64_t most = kRunsLearned) {
  auto loaded = load_observed(cluster.db(), profile, most);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error()));
  return *loaded;
}

std::vector<std::int64_t> ready(ClusterFixture& cluster, double now_s = 1000) {
  auto jobs = jobs_to_learn(cluster.db(), at(now_s), 100);
  REQUIRE_MESSAGE(jobs, (jobs ? "" : jobs.error()));
  std::vector<std::int64_t> ids;
  for (const auto& job : *jobs) ids.push_back(job.job_id);
  return ids;
}

void empty_queue(ClusterFixture& cluster) { run_sql(cluster.db(), "DELETE FROM learn_queue"); }

using Ids = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("what was saved is loaded as it was, and what was unknown stays so") {
  ClusterFixture cluster;
  ObservedJob saved = job_of(1);
  saved.nodes_asked = 4;
  REQUIRE(save_observed(cluster.db(), saved, at(100)));
  const auto jobs = load(cluster);
  REQUIRE(jobs.size() == 1);
  const auto& job = jobs.front();
  CHECK(job.profile == "1000/p");
  CHECK(job.job_id == 1);
  CHECK(job.submit_s == kStartS + 1);
  CHECK(job.end_s == kStartS + 11);
  CHECK(job.name == "solver1");
  CHECK(job.partition == "debug");
  CHECK(job.nodes_asked == 4);
  REQUIRE(job.phases.size() == 2);
  CHECK(job.phases[0].path.empty());
  CHECK(job.phases[0].duration_s == 10.5);
  CHECK_FALSE(job.phases[0].tasks);
  CHECK_FALSE(job.phases[0].cpu_time_s);
  CHECK_FALSE(job.phases[0].cpus_busy);
  CHECK_FALSE(job.phases[0].memory_peak_bytes);
  CHECK(job.phases[1].path == "solve");
  CHECK(job.phases[1].tasks == 4);
  CHECK(job.phases[1].cpu_time_s == 20.25);
  CHECK(job.phases[1].cpus_busy == 1.5);
  CHECK(job.phases[1].memory_peak_bytes == 7 * kMiB);
  CHECK(job.phases[1].memory_limit_bytes == 9 * kMiB);
  CHECK(job.phases[1].flags == (kObservedOom | kObservedUnclosed));
}

TEST_CASE("the same start saved again replaces what was there") {
  ClusterFixture cluster;
  REQUIRE(save_observed(cluster.db(), job_of(1), at(100)));
  ObservedJob again = job_of(1);
  again.phases.resize(1);
  REQUIRE(save_observed(cluster.db(), again, at(200)));
  REQUIRE(load(cluster).size() == 1);
  CHECK(load(cluster).front().phases.size() == 1);
}

TEST_CASE("the last runs are loaded, oldest first, of one profile alone") {
  ClusterFixture cluster;
  for (const int id : {3, 1, 5, 2, 4}) REQUIRE(save_observed(cluster.db(), job_of(id), at(100)));
  REQUIRE(save_observed(cluster.db(), job_of(6, "1001/p"), at(100)));
  const auto jobs = load(cluster, "1000/p", 3);
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].job_id == 3);
  CHECK(jobs[2].job_id == 5);
  CHECK(load(cluster, "nobody/p").empty());
}

TEST_CASE("a forgotten profile begins anew with the runs that end later") {
  ClusterFixture cluster;
  REQUIRE(save_observed(cluster.db(), job_of(1), at(100)));
  REQUIRE(clear_touched(cluster.db(), {"1000/p"}));
  REQUIRE(forget_profile(cluster.db(), "1000/p", at(12)));
  CHECK(load(cluster).empty());
  CHECK(list_profiles(cluster.db())->empty());
  CHECK(*touched_profiles(cluster.db()) == std::vector<std::string>{"1000/p"});
  REQUIRE(save_observed(cluster.db(), job_of(5), at(100)));
  CHECK(load(cluster).size() == 1);
  CHECK(list_profiles(cluster.db())->front().runs == 1);
}

TEST_CASE("profiles are listed with their last run, last seen first") {
  ClusterFixture cluster;
  for (const int id : {1, 2, 3}) REQUIRE(save_observed(cluster.db(), job_of(id), at(100)));
  REQUIRE(save_observed(cluster.db(), job_of(9, "1001/~aa"), at(100)));
  const auto profiles = list_profiles(cluster.db());
  REQUIRE(profiles);
  REQUIRE(profiles->size() == 2);
  const auto& first = (*profiles)[0];
  CHECK(first.profile == "1001/~aa");
  CHECK(first.uid == 1001);
  const auto& second = (*profiles)[1];
  CHECK(second.runs == 3);
  CHECK(second.name == "solver3");
  CHECK(second.partition == "debug");
  CHECK(second.last_end_s == kStartS + 13);
}

TEST_CASE("clearing a number takes its observations, and touches the profile that loses them") {
  ClusterFixture cluster;
  REQUIRE(save_observed(cluster.db(), job_of(1), at(100)));
  REQUIRE(save_observed(cluster.db(), job_of(2), at(100)));
  REQUIRE(clear_touched(cluster.db(), *touched_profiles(cluster.db())));
  REQUIRE(clear_observed(cluster.db(), {"c1", 1}));
  CHECK(load(cluster).size() == 1);
  CHECK(touched_profiles(cluster.db())->size() == 1);
  auto left = cluster.db().prepare("SELECT count(*) FROM observation");
  REQUIRE(left->step());
  CHECK(left->integer(0) == 2);
}

TEST_CASE("limits of a partition that is not known are none") {
  ClusterFixture cluster;
  run_sql(cluster.db(), "INSERT INTO partition_limits VALUES('c1','debug',2,8,3600,NULL,4,0)");
  run_sql(cluster.db(), "INSERT INTO partition_limits VALUES('c1','long',1,4,NULL,1000,4,0)");
  const auto debug = load_partition_limits(cluster.db(), "c1", "debug");
  REQUIRE(debug);
  CHECK(debug->nodes_least == 2);
  CHECK(debug->nodes_most == 8);
  CHECK(debug->time_most_s == 3600);
  CHECK(debug->memory_most_bytes == 0);
  const auto both = load_partition_limits(cluster.db(), "c1", "debug,long,gone");
  CHECK(both->nodes_least == 2);
  CHECK(both->nodes_most == 4);
  CHECK(both->time_most_s == 3600);
  CHECK(both->memory_most_bytes == 1000);
  CHECK(load_partition_limits(cluster.db(), "c2", "debug")->nodes_most == 0);
  CHECK(load_partition_limits(cluster.db(), "c1", "")->nodes_most == 0);
}

TEST_CASE("a job is learned from when its last start has ended") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  add_job(cluster.db(), {.end_s = {}, .state = "RUNNING"});
  CHECK(ready(cluster).empty());
  run_sql(cluster.db(), "UPDATE job SET end_time = start_time + 10, state = 'COMPLETED'");
  CHECK(ready(cluster) == Ids{123});
  add_job(cluster.db(), {.restart_count = 1, .begin_s = {}, .end_s = {}, .state = "PENDING"});
  CHECK(ready(cluster).empty());
}

TEST_CASE("without a record, a job is learned from when its runs have ended or are silent") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.job_id = 1});
  add_run(cluster.db(), {.job_id = 2, .end_s = {}, .last_s = 900});
  add_run(cluster.db(), {.job_id = 3, .end_s = {}, .last_s = 600});
  CHECK(ready(cluster, 1000) == Ids{1, 3});
}

TEST_CASE("only what is news to learning brings a job back") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1"}, 0, 10);
  for (const char* same :
       {"UPDATE job SET seen_ns = seen_ns + 1, state = state", "UPDATE allocation SET cpus = cpus",
        "UPDATE run SET last_ns = last_ns, markers = 7", "SELECT 1"}) {
    INFO(same);
    empty_queue(cluster);
    run_sql(cluster.db(), same);
    CHECK(ready(cluster).empty());
  }
  const char* const new_run =
      "INSERT INTO run(cluster, job_id, restart_count, start_ns, step, node, uid, period_ns,"
      " sphase_version) VALUES('c1', 123, 0, 1, '7', 'n7', 1, 1, 'x')";
  for (const char* news : {"UPDATE job SET state = 'FAILED'", "UPDATE job SET admin_comment = 'x'",
                           "UPDATE job SET suspended_s = 3", "UPDATE run SET last_ns = last_ns + 1",
                           "UPDATE allocation SET memory_bytes = 1", new_run}) {
    INFO(news);
    empty_queue(cluster);
    run_sql(cluster.db(), news);
    CHECK(ready(cluster) == Ids{123});
    run_sql(cluster.db(), news[0] == 'I' ? "DELETE FROM run WHERE step = '7'" : "SELECT 1");
  }
  REQUIRE(forget_news(cluster.db(), {"c1", 123}));
  CHECK(ready(cluster).empty());
}

TEST_CASE("no more jobs are named than asked for") {
  ClusterFixture cluster;
  for (int job = 1; job <= 10; ++job) add_run(cluster.db(), {.job_id = job});
  CHECK(jobs_to_learn(cluster.db(), at(1000), 4)->size() == 4);
}
