// Source: collector/timeline/run_load.cpp.
#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

void merged_at(ClusterFixture& cluster, const std::string& node, double time_s) {
  run_sql(cluster.db(), "INSERT INTO source VALUES('/" + node + "', '" + node + "', " +
                            std::to_string(at(time_s)) + ", 1, NULL, NULL, NULL)");
}

Run only_run(ClusterFixture& cluster) { return cluster.load("123").front().runs.front(); }

}  // namespace

TEST_CASE("a run without an end is lost if its job has ended, and its phases end with it") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.end_s = 60});
  const auto run = add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 30});
  merged_at(cluster, "n1", 70);
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 20});
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.runs.front().lost);
  const auto& solve = row_named(timeline.rows, "solve");
  CHECK(solve.end_ns == at(30));
  CHECK((solve.flags & kRecorderLost) != 0);
  CHECK(says(timeline.missing, "the recorder of step 0 was lost on n1"));
}

TEST_CASE("a run is lost if its step has ended on other nodes") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.end_s = 50, .node = "n1"});
  add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 30, .node = "n2"});
  merged_at(cluster, "n2", 60);
  const auto runs = cluster.load("123").front().runs;
  CHECK_FALSE(runs[0].lost);
  CHECK(runs[1].lost);
}

TEST_CASE("a run that was silent for long when its file was merged is lost") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 30});
  merged_at(cluster, "n1", 30 + 301);
  CHECK(only_run(cluster).lost);
}

TEST_CASE("a run heard of just before the merge still goes on, and its phases are open") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 30});
  merged_at(cluster, "n1", 31);
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 20});
  const auto timeline = cluster.load("123").front();
  CHECK(timeline.running);
  CHECK_FALSE(timeline.runs.front().lost);
  CHECK((row_named(timeline.rows, "solve").flags & kOpen) != 0);
  CHECK((row_named(timeline.rows, "step 0").flags & kOpen) != 0);
}

TEST_CASE("a phase left open in a run that ended is closed with it, as unclosed") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.end_s = 10});
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 2});
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "solve").end_ns == at(10));
  CHECK((row_named(rows, "solve").flags & kUnclosed) != 0);
}

TEST_CASE("a memory limit of 0 means that Slurm does not manage it") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.job_memory_bytes = 0, .step_memory_bytes = 0});
  CHECK_FALSE(only_run(cluster).job_memory_bytes.has_value());
  CHECK_FALSE(only_run(cluster).step_memory_bytes.has_value());
}

TEST_CASE("flags that a database may not set are not believed") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_phase(cluster.db(), run, {.path = "a", .begin_s = 1, .end_s = 2, .flags = 0xFFFF0000u});
  CHECK(only_run(cluster).phases.front().flags == 0);
}

TEST_CASE("times and counters that cannot be are not believed") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 10, 1);
  for (const char* numbers :
       {"1, -9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807",
        "2, 9223372036854775807, -9223372036854775807, -5, -5",
        "3, 0, 0, 4000000000000000000, 4000000000000000000"}) {
    run_sql(cluster.db(),
            "INSERT INTO phase(run_id, scope, task, path, depth, count, threads, flags, number,"
            " begin_ns, end_ns, cpu_time_ns, memory_peak_bytes) VALUES(" +
                std::to_string(run) + ", 'task', 0, 'evil', 0, 1, 1, 0, " + numbers + ")");
  }
  const auto timeline = cluster.load("123").front();
  for (const auto& mark : timeline.runs.front().phases) {
    CHECK(mark.begin_ns >= at(-1));
    CHECK(mark.end_ns <= at(11));
    CHECK(mark.end_ns >= mark.begin_ns);
    CHECK_FALSE(mark.cpu_time_ns.has_value());
    CHECK_FALSE(mark.memory_peak_bytes.has_value());
  }
}

TEST_CASE("a run is lost if the plugin saw its recorder go") {
  ClusterFixture cluster;
  add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 30});
  merged_at(cluster, "n1", 31);
  add_notice(cluster.db(), "n1", "recorder-lost", "killed", "1", 123, 30);  // of another step
  CHECK_FALSE(only_run(cluster).lost);
  add_notice(cluster.db(), "n1", "recorder-lost", "killed", "0", 123, 30);
  CHECK(only_run(cluster).lost);
}

TEST_CASE("after a recorder was lost its step's node is neither used nor idle") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.end_s = 50, .node = "n1"});
  add_samples(cluster.db(), run, 0, 50, 4);
  const auto lost = add_run(cluster.db(), {.end_s = std::nullopt, .last_s = 20, .node = "n2"});
  add_samples(cluster.db(), lost, 0, 20, 4);
  const auto rows = cluster.load("123").front().rows;
  const auto& step = row_named(rows, "step 0");
  CHECK(*step.wasted_node_s == doctest::Approx(0));
  CHECK((step.flags & kPartial) != 0);
  CHECK((step.flags & kRecorderLost) != 0);
  CHECK((step.flags & kCrossed) == 0);
}

TEST_CASE("how the tasks of a run were ended is known, also from a shell around them") {
  struct Row {
    const char* exit_status;  // wait status
    bool killed, crashed;
  };
  for (const Row& row : {Row{"0", false, false}, Row{"256", false, false}, Row{"9", true, false},
                         Row{"35072", true, false},                        // exit code 137
                         Row{"11", false, true}, Row{"139", false, true},  // with a core
                         Row{"34304", false, true},                        // exit code 134
                         Row{"15", false, false}, Row{"NULL", false, false}}) {
    INFO(row.exit_status);
    ClusterFixture cluster;
    add_run(cluster.db(), {});
    run_sql(cluster.db(), "INSERT INTO task(run_id, task, exit_status) VALUES(1, 0, 0), (1, 1, " +
                              std::string(row.exit_status) + ")");
    const auto runs = cluster.load("123").front().runs;
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].killed == row.killed);
    CHECK(runs[0].crashed == row.crashed);
  }
}

TEST_CASE("the kernel's high-water mark of a run is its largest one, and unknown without any") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 3, 1);
  CHECK_FALSE(cluster.load("123").front().runs[0].memory_high_bytes);
  run_sql(cluster.db(), "UPDATE sample SET memory_peak_bytes = (time_ns - " +
                            std::to_string(kStart) + ") / 1000000000 WHERE time_ns > " +
                            std::to_string(kStart));
  CHECK(cluster.load("123").front().runs[0].memory_high_bytes == 3);
}
