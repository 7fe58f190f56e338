// Source: collector/learn/observe.cpp.
#include <doctest/doctest.h>

#include "collector/learn/observation.h"
#include "common/profile_key.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

ObservedJob observe_only(ClusterFixture& cluster, const std::string& job = "123") {
  const auto starts = cluster.load(job);
  REQUIRE(starts.size() == 1);
  const auto seen = observe(starts.front(), "1000/p", 2);
  REQUIRE(seen);
  return *seen;
}

const Observation& phase_named(const ObservedJob& job, const std::string& path) {
  for (const auto& phase : job.phases) {
    if (phase.path == path) return phase;
  }
  FAIL("no phase " << path);
  return job.phases.front();
}

/// Ten seconds on two nodes; n1 has 3 CPUs busy, n2 `cpus`; each holds 200 MiB.
void add_two_nodes(ClusterFixture& cluster, double cpus, const JobSpec& job = {},
                   std::int64_t memory_bytes = 200 * kMiB) {
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2"}, 0, 10);
  const auto first = add_run(cluster.db(), {.step_nodes = 2});
  const auto second = add_run(cluster.db(), {.node = "n2", .step_nodes = 2});
  add_samples(cluster.db(), first, 0, 10, 3, 200 * kMiB);
  add_samples(cluster.db(), second, 0, 10, cpus, memory_bytes);
}

}  // namespace

TEST_CASE("the whole job comes first, with what its record says") {
  ClusterFixture cluster;
  add_two_nodes(cluster, 2);
  const auto job = observe_only(cluster);
  CHECK(job.profile == "1000/p");
  CHECK(job.cluster == "c1");
  CHECK(job.job_id == 123);
  CHECK(job.submit_s == kStartS);
  CHECK(job.end_s == kStartS + 10);
  CHECK(job.name == "solver");
  CHECK(job.nodes_asked == 2);
  REQUIRE(job.phases.size() == 1);
  const auto& whole = job.phases.front();
  CHECK(whole.path.empty());
  CHECK(whole.nodes == 2);
  CHECK(whole.nodes_used == 2);
  CHECK(whole.tasks == 2);
  CHECK(whole.duration_s == doctest::Approx(10));
  CHECK(*whole.cpu_time_s == doctest::Approx(50));
  CHECK(*whole.cpus_busy == doctest::Approx(3));
  CHECK(whole.memory_peak_bytes == 200 * kMiB);
  CHECK(whole.memory_limit_bytes == 1000 * kMiB);
  CHECK(whole.flags == 0);
}

TEST_CASE("a node that does stray work and holds little is not used") {
  ClusterFixture cluster;
  add_two_nodes(cluster, 0.05, {}, 10 * kMiB);
  CHECK(observe_only(cluster).phases.front().nodes_used == 1);
}

TEST_CASE("a node that only holds memory is used, and so is one that only computes") {
  for (const bool memory : {true, false}) {
    ClusterFixture cluster;
    add_two_nodes(cluster, memory ? 0 : 1, {}, memory ? 100 * kMiB : kMiB);
    CHECK(observe_only(cluster).phases.front().nodes_used == 2);
  }
}

TEST_CASE("a node that told nothing counts as used, and the job as partly known") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1", "n2"}, 0, 10);
  const auto run = add_run(cluster.db(), {.step_nodes = 2});
  add_samples(cluster.db(), run, 0, 10, 3);
  add_phase(cluster.db(), run, {.path = "solve", .begin_s = 1, .end_s = 9, .cpu_s = 24});
  const auto job = observe_only(cluster);
  for (const auto& phase : job.phases) {
    INFO(phase.path);
    CHECK(phase.nodes_used == 2);
    CHECK((phase.flags & kObservedPartial) != 0);
  }
}

TEST_CASE("an idle node of the allocation is not used") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1", "n2"}, 0, 10);
  const auto run = add_run(cluster.db(), {.step_nodes = 1});
  add_samples(cluster.db(), run, 0, 10, 3);
  const auto job = observe_only(cluster);
  CHECK(job.phases.front().nodes == 2);
  CHECK(job.phases.front().nodes_used == 1);
  CHECK((job.phases.front().flags & kObservedPartial) == 0);
}

TEST_CASE("a path in two steps is one phase, in the order in which phases begin") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1"}, 0, 10);
  const auto first = add_run(cluster.db(), {.begin_s = 0, .end_s = 5});
  const auto second = add_run(cluster.db(), {.begin_s = 5, .end_s = 10, .step = "1"});
  add_samples(cluster.db(), first, 0, 5, 1, 100 * kMiB);
  add_samples(cluster.db(), second, 5, 10, 2, 300 * kMiB);
  add_phase(cluster.db(), first, {.path = "solve", .begin_s = 2, .end_s = 4, .cpu_s = 2});
  add_phase(cluster.db(), first, {.path = "read", .begin_s = 0.5, .end_s = 1.5, .cpu_s = 1});
  add_phase(cluster.db(), second, {.path = "solve", .begin_s = 6, .end_s = 9, .cpu_s = 6});
  add_phase(cluster.db(), second,
            {.path = "solve/inner", .begin_s = 7, .end_s = 8, .cpu_s = 2, .depth = 1});
  const auto job = observe_only(cluster);
  REQUIRE(job.phases.size() == 3);
  CHECK(job.phases[1].path == "read");
  const auto& solve = job.phases[2];
  CHECK(solve.path == "solve");
  CHECK(solve.duration_s == doctest::Approx(5));
  CHECK(*solve.cpu_time_s == doctest::Approx(8));
  CHECK(*solve.cpus_busy == doctest::Approx(2));
  CHECK(solve.memory_peak_bytes == 300 * kMiB);
  CHECK(solve.nodes == 1);
  CHECK(solve.tasks == 1);
}

TEST_CASE("steps side by side that mark the same path share its time") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1", "n2"}, 0, 10);
  const auto first = add_run(cluster.db(), {.step_nodes = 1});
  const auto second = add_run(cluster.db(), {.step = "1", .node = "n2", .step_nodes = 1});
  add_samples(cluster.db(), first, 0, 10, 1);
  add_samples(cluster.db(), second, 0, 10, 1);
  add_phase(cluster.db(), first, {.path = "solve", .begin_s = 1, .end_s = 6, .cpu_s = 5});
  add_phase(cluster.db(), second, {.path = "solve", .begin_s = 2, .end_s = 9, .cpu_s = 7});
  const auto job = observe_only(cluster);
  const auto& solve = phase_named(job, "solve");
  CHECK(solve.duration_s == doctest::Approx(8));
  CHECK(solve.nodes_used == 2);
  CHECK(*solve.cpu_time_s == doctest::Approx(12));
}

TEST_CASE("many short instances are one phase, their times summed") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_allocation(cluster.db(), {}, {"n1"}, 0, 10);
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 10, 1);
  for (int i = 0; i < 20; ++i) {
    const double begin_s = 0.4 * i;
    add_phase(cluster.db(), run,
              {.path = "solve",
               .begin_s = begin_s,
               .end_s = begin_s + 0.2,
               .cpu_s = 0.2,
               .number = i + 1});
  }
  const auto job = observe_only(cluster);
  const auto& solve = phase_named(job, "solve");
  CHECK(solve.duration_s == doctest::Approx(4));
  CHECK(*solve.cpus_busy == doctest::Approx(1));  // no half second of its own: the mean
}

TEST_CASE("phases of the script cover every node, and tasks' marks of that name lie in them") {
  ClusterFixture cluster;
  add_two_nodes(cluster, 2);
  const auto script = add_run(cluster.db(), {.step = "batch"});
  add_samples(cluster.db(), script, 0, 10, 0);
  add_phase(cluster.db(), script,
            {.path = "solve", .begin_s = 2, .end_s = 8, .cpu_s = 0, .scope = "shell"});
  add_phase(
      cluster.db(), script,
      {.path = "solve/part", .begin_s = 3, .end_s = 4, .cpu_s = 0, .depth = 1, .scope = "shell"});
  add_phase(cluster.db(), 1, {.path = "solve", .begin_s = 3, .end_s = 5, .cpu_s = 6});
  add_phase(cluster.db(), 1, {.path = "write", .begin_s = 5, .end_s = 6, .cpu_s = 3});
  const auto job = observe_only(cluster);
  REQUIRE(job.phases.size() == 3);
  const auto& solve = phase_named(job, "solve");
  CHECK(solve.duration_s == doctest::Approx(6));
  CHECK(solve.nodes_used == 2);
  CHECK(*solve.cpu_time_s == doctest::Approx(30));
  CHECK(phase_named(job, "write").duration_s == doctest::Approx(1));
}

TEST_CASE("how a job ended flags it, and the phase that was open then") {
  struct Row {
    const char* state;
    std::uint32_t flag;
    bool on_ended_phase;
  };
  for (const Row& row :
       {Row{"OUT_OF_MEMORY", kObservedOom, false}, Row{"TIMEOUT", kObservedTimeout, false},
        Row{"FAILED", kObservedFailed, true}, Row{"CANCELLED", kObservedFailed, true},
        Row{"NODE_FAIL", kObservedFailed, true}, Row{"PREEMPTED", kObservedFailed, true},
        Row{"REQUEUED", kObservedFailed, true}, Row{"COMPLETED", 0, false}}) {
    INFO(row.state);
    ClusterFixture cluster;
    add_two_nodes(cluster, 2, {.state = row.state});
    add_phase(cluster.db(), 1, {.path = "read", .begin_s = 1, .end_s = 2, .cpu_s = 3});
    add_phase(cluster.db(), 1, {.path = "solve", .begin_s = 3});
    constexpr std::uint32_t kEnds = kObservedOom | kObservedTimeout | kObservedFailed;
    const auto job = observe_only(cluster);
    CHECK((job.phases.front().flags & kEnds) == row.flag);
    CHECK((phase_named(job, "read").flags & kEnds) == (row.on_ended_phase ? row.flag : 0));
    CHECK((phase_named(job, "solve").flags & kEnds) == row.flag);
    CHECK((phase_named(job, "solve").flags & kObservedUnclosed) != 0);
  }
}

namespace {

void add_task(Database& db, std::int64_t run, int exit_status) {
  run_sql(db, "INSERT INTO task(run_id, task, exit_status) VALUES(" + std::to_string(run) + ",0," +
                  std::to_string(exit_status) + ")");
}

/// A job that ended well, with a step of two seconds in the script's phase "solve"; the kernel's
/// mark of the step is at `high` MiB of 1000.
void add_killed_step(ClusterFixture& cluster, int exit_status, std::int64_t high_mib,
                     const std::string& state = "COMPLETED") {
  add_job(cluster.db(), {.state = state});
  add_allocation(cluster.db(), {}, {"n1"}, 0, 10);
  const auto script = add_run(cluster.db(), {.step = "batch"});
  const auto step = add_run(cluster.db(), {.begin_s = 4, .end_s = 6});
  add_samples(cluster.db(), script, 0, 10, 0, kMiB);
  add_samples(cluster.db(), step, 4, 6, 1, 10 * kMiB);
  run_sql(cluster.db(), "UPDATE sample SET memory_peak_bytes = " + std::to_string(high_mib * kMiB) +
                            " WHERE run_id = 2");
  add_phase(cluster.db(), script,
            {.path = "prep", .begin_s = 1, .end_s = 3, .cpu_s = 0, .scope = "shell"});
  add_phase(cluster.db(), script,
            {.path = "solve", .begin_s = 3, .end_s = 7, .cpu_s = 0, .scope = "shell"});
  add_task(cluster.db(), step, exit_status);
}

}  // namespace

TEST_CASE("a step that was killed for memory counts, though its script went on and ended well") {
  for (const int exit_status : {9, 137 << 8}) {  // by itself, and under a shell
    ClusterFixture cluster;
    add_killed_step(cluster, exit_status, 960);
    const auto job = observe_only(cluster);
    CHECK(job.phases.front().flags == kObservedOom);
    CHECK(job.phases.front().memory_peak_bytes == 960 * kMiB);
    CHECK(phase_named(job, "solve").flags == kObservedOom);
    CHECK(phase_named(job, "solve").memory_peak_bytes == 960 * kMiB);
    CHECK(phase_named(job, "solve").memory_limit_bytes == 1000 * kMiB);
    CHECK(phase_named(job, "prep").flags == 0);
    CHECK(phase_named(job, "prep").memory_peak_bytes < 100 * kMiB);
  }
}

TEST_CASE("a kill far from the limit, or by a person, was not for memory") {
  ClusterFixture cluster;
  add_killed_step(cluster, 9, 500);
  CHECK(observe_only(cluster).phases.front().flags == 0);
  ClusterFixture cancelled;
  add_killed_step(cancelled, 9, 960, "CANCELLED");
  CHECK(observe_only(cancelled).phases.front().flags == kObservedFailed);
}

TEST_CASE("a task that crashed makes the job a failed one; one that was told to end does not") {
  ClusterFixture crashed;
  add_killed_step(crashed, 11, 500);
  CHECK(observe_only(crashed).phases.front().flags == kObservedFailed);
  ClusterFixture told;
  add_killed_step(told, 15, 960);
  CHECK(observe_only(told).phases.front().flags == 0);
}

TEST_CASE("an exit code is a failure, whatever the state says") {
  ClusterFixture cluster;
  add_two_nodes(cluster, 2);
  run_sql(cluster.db(), "UPDATE job SET exit_code = 256");
  CHECK((observe_only(cluster).phases.front().flags & kObservedFailed) != 0);
}

TEST_CASE("suspended time is not run time") {
  ClusterFixture cluster;
  add_two_nodes(cluster, 2);
  run_sql(cluster.db(), "UPDATE job SET suspended_s = 4");
  CHECK(observe_only(cluster).phases.front().duration_s == doctest::Approx(6));
}

TEST_CASE("a job that goes on, or never began, teaches nothing yet") {
  ClusterFixture cluster;
  add_job(cluster.db(), {.end_s = {}, .state = "RUNNING"});
  add_run(cluster.db(), {.end_s = {}, .last_s = 5});
  CHECK_FALSE(observe(cluster.load("123").front(), "1000/p", {}));
  ClusterFixture other;
  add_job(other.db(), {.begin_s = {}, .end_s = 10, .state = "CANCELLED"});
  CHECK_FALSE(observe(other.load("123").front(), "1000/p", {}));
}

TEST_CASE("a job without a record is learned from its runs, and nobody says how it ended") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.step_nodes = 1});
  add_samples(cluster.db(), run, 0, 10, 2);
  const auto job = observe_only(cluster);
  CHECK(job.submit_s == 0);
  CHECK(job.start_s == kStartS);
  CHECK(job.phases.front().nodes == 1);
  CHECK(job.phases.front().flags == 0);
}

TEST_CASE("what no counter told stays unknown") {
  ClusterFixture cluster;
  add_job(cluster.db(), {});
  add_run(cluster.db(), {.job_memory_bytes = {}, .step_memory_bytes = {}});
  const auto whole = observe_only(cluster).phases.front();
  CHECK_FALSE(whole.cpu_time_s);
  CHECK_FALSE(whole.cpus_busy);
  CHECK_FALSE(whole.memory_peak_bytes);
  CHECK_FALSE(whole.memory_limit_bytes);
  CHECK((whole.flags & kObservedPartial) != 0);
}

TEST_CASE("the profile is the audit line's, else the one that a run was given") {
  Timeline timeline;
  timeline.job.uid = 1000;
  timeline.job.requested_nodes = 2;
  CHECK_FALSE(profile_of(timeline));
  timeline.runs.emplace_back().profile = "step";
  timeline.runs.emplace_back().profile = "mine";
  timeline.runs.back().step = "batch";
  CHECK(profile_of(timeline)->profile == profile_key(1000, "mine", "", "").view());
  CHECK(profile_of(timeline)->nodes_asked == 2);
  timeline.job.admin_comment = "sphase/1 profile=1000/~aa asked=nodes:4 set=nodes:2";
  CHECK(profile_of(timeline)->profile == "1000/~aa");
  CHECK(profile_of(timeline)->nodes_asked == 4);
  CHECK(profile_of(timeline)->memory_unset);
  timeline.job.admin_comment = "sphase/1 profile=1000/~aa asked=nodes:4,memory:100";
  CHECK_FALSE(profile_of(timeline)->memory_unset);
  timeline.job.admin_comment = "sphase/1 profile=1000/~aa";
  CHECK_FALSE(profile_of(timeline)->memory_unset);
  timeline.job.admin_comment = "sphase/1 profile=1001/~aa";
  CHECK(profile_of(timeline)->profile == profile_key(1000, "mine", "", "").view());
  timeline.job.uid.reset();
  timeline.job.admin_comment.reset();
  CHECK_FALSE(profile_of(timeline));
}
