#include "collector/timeline/timeline.h"

#include <doctest/doctest.h>

#include <chrono>

#include "collector/timeline/timeline_load.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a job can be named as Slurm names it") {
  const auto plain = parse_job_selector("123");
  REQUIRE(plain);
  CHECK(plain->job_id == 123);
  CHECK(plain->step.empty());
  const auto array = parse_job_selector("123_4.batch");
  REQUIRE(array);
  CHECK(array->array_task == 4);
  CHECK(array->step == "batch");
  const auto het = parse_job_selector("123+1.0");
  REQUIRE(het);
  CHECK(het->het_offset == 1);
  CHECK(het->step == "0");
}

TEST_CASE("what is not a job is refused with what would be right") {
  for (const char* wrong : {"", "abc", "0", "-5", "123_", "123+", "123.", "123x", "12 3", "123_4_5",
                            "99999999999999999999"}) {
    const auto selector = parse_job_selector(wrong);
    INFO(wrong);
    REQUIRE_FALSE(selector);
    CHECK(selector.error().find("right are 123, 123_4") != std::string::npos);
  }
}

TEST_CASE("an unknown job names those that are known") {
  ClusterFixture cluster;
  CHECK(cluster.error_of("7").find("no job is known yet") != std::string::npos);
  for (int job = 1; job <= 12; ++job) {
    add_run(cluster.db(), {.job_id = job, .begin_s = 1.0 * job});
  }
  CHECK(cluster.error_of("77") ==
        "job 77 is not known; known are 12, 11, 10, 9, 8, 7, 6, 5, … (`sphase jobs` lists all)");
}

TEST_CASE("each start of a requeued job is shown, with the runs of its own") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.end_s = 20, .state = "REQUEUED"});
  add_job(cluster.db(), {.restart_count = 1, .begin_s = 100, .end_s = 120});
  add_run(cluster.db(), {.begin_s = 1, .end_s = 19, .step = "batch"});
  add_run(cluster.db(), {.restart_count = 1, .begin_s = 101, .end_s = 119, .step = "batch"});
  const auto starts = cluster.load("123");
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].job.state == "REQUEUED");
  CHECK(starts[0].runs.size() == 1);
  CHECK(starts[1].job.restart_count == 1);
  CHECK(starts[1].runs.front().begin_ns == at(101));
  CHECK(starts[1].starts == 2);
}

TEST_CASE("a job id used again shows the latest job, and says that there was another") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_job(cluster.db(), {.submit_s = 5000, .begin_s = 5000, .end_s = 5010});
  add_run(cluster.db(), {.begin_s = 1, .end_s = 9});
  add_run(cluster.db(), {.begin_s = 5001, .end_s = 5009});
  const auto starts = cluster.load("123");
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].runs.size() == 1);
  CHECK(starts[0].runs.front().begin_ns == at(5001));
  CHECK(says(starts[0].missing, "was used before"));

  auto all = parse_job_selector("123");
  all->every = true;
  CHECK(load_timelines(cluster.db(), *all)->size() == 2);
}

TEST_CASE("tasks of an array are found by their names, and the array's own number asks which") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.job_id = 125, .array_job_id = 123, .array_task_id = 4});
  CHECK(cluster.load("123_4").front().job.job_id == 125);
  CHECK(cluster.load("125").front().job.array_task_id == 4);
  CHECK(cluster.load("123").size() == 1);  // only one is known: that one
  add_run(cluster.db(), {.job_id = 123, .array_job_id = 123, .array_task_id = 5});
  CHECK(cluster.error_of("123").find("is a job array: choose a task (123_4, 123_5)") !=
        std::string::npos);
  CHECK(cluster.load("123_5").front().job.job_id == 123);
  CHECK(cluster.error_of("123_9").find("not known") != std::string::npos);
}

TEST_CASE("components of a heterogeneous job are shown together or one by one") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.job_id = 123, .het_job_id = 123, .het_offset = 0});
  add_run(cluster.db(), {.job_id = 124, .node = "n2", .het_job_id = 123, .het_offset = 1});
  CHECK(cluster.load("123").size() == 2);
  CHECK(cluster.load("123+1").front().job.job_id == 124);
}

TEST_CASE("phases of a heterogeneous job's script are of all its components") {
  ClusterFixture cluster;
  const auto batch =
      add_run(cluster.db(), {.job_id = 123, .step = "batch", .het_job_id = 123, .het_offset = 0});
  add_phase(cluster.db(), batch, {.path = "solve", .begin_s = 2, .end_s = 8, .scope = "shell"});
  const auto run = add_run(
      cluster.db(),
      {.job_id = 124, .begin_s = 3, .end_s = 7, .node = "n2", .het_job_id = 123, .het_offset = 1});
  add_samples(cluster.db(), run, 3, 7, 2);
  const auto rows = cluster.load("123+1").front().rows;
  CHECK(row_named(rows, "solve").cpu_time_ns == ns(8));
  CHECK(row_named(rows, "step 0").level == 2);
}

TEST_CASE("one step of a job can be asked for, and an unknown one names the others") {
  ClusterFixture cluster;
  for (const char* step : {"batch", "0", "1"}) {
    const auto run = add_run(cluster.db(), {.step = step});
    add_phase(cluster.db(), run, {.path = std::string("in ") + step, .begin_s = 1, .end_s = 2});
  }
  const auto rows = cluster.load("123.1").front().rows;
  CHECK(rows.front().name == "step 1");
  CHECK(find_row(rows, "in 1") != nullptr);
  CHECK(find_row(rows, "in 0") == nullptr);
  CHECK(cluster.error_of("123.7") == "job 123 has no step 7; recorded are: 0, 1, batch");
}

TEST_CASE("one number in two clusters asks which") {
  ClusterFixture cluster;
  add_run(cluster.db(), {});
  add_run(cluster.db(), {.cluster = "c2"});
  CHECK(cluster.error_of("123").find("--cluster (c1, c2)") != std::string::npos);
  auto selector = parse_job_selector("123");
  selector->cluster = "c2";
  CHECK(load_timelines(cluster.db(), *selector)->front().job.cluster == "c2");
}

TEST_CASE("a job of which only a notice is known is shown with it") {
  ClusterFixture cluster;
  add_notice(cluster.db(), "n1", "not-active", "no recorder");
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.runs.empty());
  CHECK(says(timeline.missing, "requested but not active on n1"));
}

TEST_CASE("notices of an earlier start are not the later one's") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.step = "batch"});
  add_run(cluster.db(), {.begin_s = 5000, .end_s = 5010, .step = "batch"});
  add_notice(cluster.db(), "n1", "limit", "early");
  add_notice(cluster.db(), "n1", "limit", "late", "0", 123, 5005);
  const auto timeline = cluster.load("123").back();
  CHECK(says(timeline.missing, "late"));
  CHECK_FALSE(says(timeline.missing, "early"));
}

TEST_CASE("without records the allocation is what the runs saw, and that is said") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.node = "n1"});
  add_run(cluster.db(), {.node = "n2"});
  const auto timeline = cluster.load("123").front();
  REQUIRE(timeline.allocations.size() == 1);
  CHECK(timeline.allocations.front().deduced);
  CHECK(timeline.allocations.front().nodes.size() == 2);
  CHECK(timeline.begin_ns == at(0));
  CHECK(timeline.end_ns == at(10));
}

TEST_CASE("a pending job has neither begin nor rows of use") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.begin_s = std::nullopt, .end_s = std::nullopt, .state = "PENDING"});
  const auto timeline = cluster.load("123").front();
  CHECK_FALSE(timeline.running);
  CHECK(timeline.begin_ns == 0);
  CHECK_FALSE(timeline.job.start_s.has_value());
}

TEST_CASE("a report of 512 nodes takes a moment") {
  ClusterFixture cluster;
  run_sql(cluster.db(), "BEGIN");
  const JobSpec job{.end_s = 600};
  add_job(cluster.db(), job);
  std::vector<std::string> nodes;
  for (int n = 1; n <= 512; ++n) {
    nodes.push_back("n" + std::to_string(n));
    const auto run = add_run(
        cluster.db(), {.end_s = 600, .node = nodes.back(), .step_nodes = 512, .node_tasks = 4});
    for (int t = 0; t <= 600; t += 5) add_sample(cluster.db(), run, t, ns(t), 100 * kMiB);
    for (int task = 0; task < 4; ++task) {
      for (int i = 0; i < 10; ++i) {
        add_phase(cluster.db(), run,
                  {.path = "solve",
                   .begin_s = 60.0 * i,
                   .end_s = 60.0 * i + 50,
                   .cpu_s = 40,
                   .task = task,
                   .number = i + 1});
        add_phase(cluster.db(), run,
                  {.path = "solve/io",
                   .begin_s = 60.0 * i + 20,
                   .end_s = 60.0 * i + 30,
                   .cpu_s = 1,
                   .task = task,
                   .number = i + 1,
                   .depth = 1});
      }
    }
  }
  add_allocation(cluster.db(), job, nodes, 0, 600);
  run_sql(cluster.db(), "COMMIT");
  const auto before = std::chrono::steady_clock::now();
  const auto timeline = cluster.load("123").front();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  CHECK(row_named(timeline.rows, "solve").tasks == 2048);
  CHECK(row_named(timeline.rows, "solve").instances == 10);
  MESSAGE("512 nodes, 40960 phase rows, 61952 samples: " << took.count() << " s");
#ifdef NDEBUG
  CHECK(took.count() < 5);
#endif
}

TEST_CASE("tasks of an array are told from its own notation") {
  for (const std::int64_t task : {1, 4, 5, 9, 10, 12, 20}) {
    CHECK(array_holds("1,4-9,10-20:2%5", task));
  }
  for (const std::int64_t task : {0, 2, 3, 11, 21})
    CHECK_FALSE(array_holds("1,4-9,10-20:2%5", task));
  for (const char* odd : {"", "%", "x", ",", "-", "1-", "5:0"}) CHECK_FALSE(array_holds(odd, 7));
}
