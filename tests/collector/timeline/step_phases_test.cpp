#include "collector/timeline/step_phases.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// Rows of the job in a cluster.db, one per instance.
std::vector<UsageRow> detail(ClusterFixture& cluster) { return cluster.load("123").front().detail; }

/// Step 0 on nodes n1 … with samples of `cpus` busy CPUs from 0 to 10 s.
std::vector<std::int64_t> add_step(ClusterFixture& cluster, int nodes, double cpus,
                                   Maybe node_tasks = 1) {
  std::vector<std::int64_t> runs;
  for (int i = 1; i <= nodes; ++i) {
    runs.push_back(
        add_run(cluster.db(),
                {.node = "n" + std::to_string(i), .step_nodes = nodes, .node_tasks = node_tasks}));
    add_samples(cluster.db(), runs.back(), 0, 10, cpus);
  }
  return runs;
}

}  // namespace

TEST_CASE("phases of several tasks and nodes with the same path and number are one") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 2, 2);
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 1, .end_s = 5, .cpu_s = 4});
  add_phase(cluster.db(), runs[1], {.path = "solve", .begin_s = 2, .end_s = 7, .cpu_s = 8});
  const auto rows = detail(cluster);
  const auto& solve = row_named(rows, "solve");
  CHECK(solve.begin_ns == at(1));  // the first begin
  CHECK(solve.end_ns == at(7));    // the last end
  CHECK(solve.cpu_time_ns == ns(12));
  CHECK(solve.tasks == 2);
  CHECK(solve.node_count == 2);
  CHECK(*solve.imbalance_cpu == doctest::Approx(8.0 / 6));
  CHECK(*solve.imbalance_wall == doctest::Approx(5.0 / 4.5));
  CHECK(solve.cpu_allocated_ns == ns(2 * 4 * 6));
}

TEST_CASE("instances of other numbers, and of other steps, are phases of their own") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  const auto other = add_run(cluster.db(), {.step = "1"});
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 1, .end_s = 2});
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 3, .end_s = 4, .number = 2});
  add_phase(cluster.db(), other, {.path = "solve", .begin_s = 3, .end_s = 4});
  int count = 0;
  for (const auto& row : detail(cluster)) count += row.name == "solve" ? 1 : 0;
  CHECK(count == 3);
}

TEST_CASE("one task has no imbalance") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 1, .end_s = 5, .cpu_s = 4});
  const auto rows = detail(cluster);
  CHECK_FALSE(row_named(rows, "solve").imbalance_cpu.has_value());
}

TEST_CASE("a task whose CPU time is not known leaves the sum partial, and no imbalance") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1, 2);
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 1, .end_s = 5, .cpu_s = 4});
  add_phase(cluster.db(), runs[0], {.path = "solve", .begin_s = 1, .end_s = 5, .task = 1});
  const auto rows = detail(cluster);
  const auto& solve = row_named(rows, "solve");
  CHECK(solve.cpu_time_ns == ns(4));
  CHECK((solve.flags & kPartial) != 0);
  CHECK_FALSE(solve.imbalance_cpu.has_value());
  CHECK(solve.imbalance_wall.has_value());
}

TEST_CASE(
    "memory of a phase is the most of any task's row on each node, and the most of the nodes") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 2, 1);
  add_phase(cluster.db(), runs[0],
            {.path = "solve", .begin_s = 1, .end_s = 5, .memory_peak_bytes = 300});
  add_phase(cluster.db(), runs[0],
            {.path = "solve", .begin_s = 1, .end_s = 5, .task = 1, .memory_peak_bytes = 500});
  add_phase(cluster.db(), runs[1],
            {.path = "solve", .begin_s = 1, .end_s = 5, .memory_peak_bytes = 400});
  const auto rows = detail(cluster);
  const auto& solve = row_named(rows, "solve");
  CHECK(solve.nodes[0].memory_peak_bytes == 500);
  CHECK(solve.nodes[1].memory_peak_bytes == 400);
  CHECK(solve.memory_peak_bytes == 500);
}

TEST_CASE("nested phases lie inside the one in which they were opened") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  for (int i = 0; i < 2; ++i) {
    const double begin = 1 + 4 * i;
    add_phase(cluster.db(), runs[0],
              {.path = "a/b", .begin_s = begin, .end_s = begin + 3, .number = i + 1});
    add_phase(
        cluster.db(), runs[0],
        {.path = "a/b/c", .begin_s = begin + 1, .end_s = begin + 2, .number = i + 1, .depth = 1});
  }
  const auto rows = detail(cluster);
  std::vector<std::pair<std::string, int>> order;
  order.reserve(rows.size());
  for (const auto& row : rows) order.emplace_back(row.name, row.level);
  using Order = std::vector<std::pair<std::string, int>>;
  CHECK(order == Order{{"job", 0},
                       {"step 0", 1},
                       {"a/b", 2},  // a name may hold a slash of its own: depth tells
                       {"c", 3},
                       {"a/b", 2},
                       {"c", 3},
                       {"(outside)", 2}});
}

TEST_CASE("a name with a slash does not put a phase into another one") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "a", .begin_s = 1, .end_s = 9});
  add_phase(cluster.db(), runs[0], {.path = "a/b", .begin_s = 2, .end_s = 3});  // another thread
  const auto rows = detail(cluster);
  CHECK(row_named(rows, "a/b").level == row_named(rows, "a").level);
}

TEST_CASE("a phase whose outer one is not known stands in the step with all of its path") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "lost/inner", .begin_s = 1, .end_s = 2, .depth = 1});
  const auto rows = detail(cluster);
  CHECK(row_named(rows, "lost/inner").level == 2);
}

TEST_CASE("phases that the shell of a numbered step marks are that task's") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0],
            {.path = "prepare", .begin_s = 1, .end_s = 5, .cpu_s = 2, .scope = "shell"});
  add_phase(cluster.db(), runs[0],
            {.path = "prepare/read", .begin_s = 2, .end_s = 3, .cpu_s = 1, .depth = 1});
  const auto rows = detail(cluster);
  CHECK(row_named(rows, "prepare").kind == UsageRow::Kind::kTaskPhase);
  CHECK(row_named(rows, "read").level == row_named(rows, "prepare").level + 1);
}

TEST_CASE("CPU time of the phases and outside of them adds up to the step's") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 2, 2);  // 20 s of CPU time on each
  for (const auto run : runs) {
    add_phase(cluster.db(), run, {.path = "a", .begin_s = 1, .end_s = 4, .cpu_s = 5});
    add_phase(cluster.db(), run, {.path = "b", .begin_s = 4, .end_s = 9, .cpu_s = 9});
    add_phase(cluster.db(), run,
              {.path = "b/in", .begin_s = 5, .end_s = 6, .cpu_s = 2, .depth = 1});
  }
  const auto rows = detail(cluster);
  const auto& outside = row_named(rows, "(outside)");
  CHECK(outside.cpu_time_ns == ns(40 - 2 * (5 + 9)));
  CHECK(outside.time_ns == ns(2));
  CHECK(*row_named(rows, "a").cpu_time_ns + *row_named(rows, "b").cpu_time_ns +
            *outside.cpu_time_ns ==
        *row_named(rows, "step 0").cpu_time_ns);
}

TEST_CASE("a little more in the phases than in the step is the clocks' resolution") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "a", .begin_s = 0, .end_s = 9, .cpu_s = 10.004});
  const auto rows = detail(cluster);
  CHECK(row_named(rows, "(outside)").cpu_time_ns == 0);
}

TEST_CASE("phases that cover all of the step leave no row for the rest") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "a", .begin_s = 0, .end_s = 10, .cpu_s = 10});
  CHECK(find_row(detail(cluster), "(outside)") == nullptr);
}

TEST_CASE("phases of threads that overlap cannot be summed, which is said") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "a", .begin_s = 0, .end_s = 10, .cpu_s = 9});
  add_phase(cluster.db(), runs[0], {.path = "b", .begin_s = 0, .end_s = 10, .cpu_s = 9});
  const auto rows = detail(cluster);
  const auto& outside = row_named(rows, "(outside)");
  CHECK_FALSE(outside.cpu_time_ns.has_value());
  CHECK((outside.flags & kOverlap) != 0);
}

TEST_CASE("what is outside is not known where a phase's CPU time is not") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0], {.path = "a", .begin_s = 0, .end_s = 5});
  const auto rows = detail(cluster);
  CHECK_FALSE(row_named(rows, "(outside)").cpu_time_ns.has_value());
}

TEST_CASE("I/O of a phase is exact with samples at its edges, and flagged without") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);  // 1000 B a second
  add_phase(cluster.db(), runs[0], {.path = "exact", .begin_s = 2, .end_s = 4});
  add_phase(cluster.db(), runs[0], {.path = "between", .begin_s = 5.5, .end_s = 7});
  const auto rows = detail(cluster);
  CHECK(row_named(rows, "exact").io.read_call_bytes == 2000);
  CHECK((row_named(rows, "exact").flags & kIoInterpolated) == 0);
  CHECK(row_named(rows, "between").io.read_call_bytes == 1500);
  CHECK((row_named(rows, "between").flags & kIoInterpolated) != 0);
  CHECK_FALSE(row_named(rows, "exact").io.write_call_bytes.has_value());  // nobody knew it: not 0
}

TEST_CASE("a phase that one of two tasks marks does not make the other one idle") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 4, 2);  // the node is busy throughout
  add_phase(cluster.db(), runs[0], {.path = "io", .begin_s = 2, .end_s = 4, .cpu_s = 1});
  const auto rows = detail(cluster);
  const auto& io = row_named(rows, "io");
  CHECK(io.cpu_time_ns == ns(1));
  CHECK(*io.wasted_node_s == doctest::Approx(0));
}

TEST_CASE("a node of the step where no task marked the phase counts as allocated to it") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 2, 0);
  add_phase(cluster.db(), runs[0], {.path = "io", .begin_s = 2, .end_s = 4, .cpu_s = 8});
  const auto rows = detail(cluster);
  const auto& io = row_named(rows, "io");
  CHECK(io.cpu_time_ns == ns(8));
  CHECK(io.cpu_allocated_ns == ns(16));
  CHECK((io.flags & kPartial) == 0);
  CHECK(*io.wasted_node_s == doctest::Approx(0 + 2 * 0.9));  // n2: 100 of 1000 MiB
}

TEST_CASE("folded rows of all tasks are one row with their counts") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1, 2);
  add_phase(cluster.db(), runs[0], {.path = "hot", .begin_s = 1, .end_s = 1.1, .cpu_s = 0.1});
  // The tasks fold at different numbers, one of them twice.
  add_phase(cluster.db(), runs[0],
            {.path = "hot",
             .begin_s = 2,
             .end_s = 5,
             .cpu_s = 1,
             .number = 2,
             .count = 100,
             .flags = kFolded,
             .wall_s = 2});
  add_phase(cluster.db(), runs[0],
            {.path = "hot",
             .begin_s = 5,
             .end_s = 8,
             .cpu_s = 1,
             .number = 102,
             .count = 50,
             .flags = kFolded,
             .wall_s = 1});
  add_phase(cluster.db(), runs[0],
            {.path = "hot",
             .begin_s = 2,
             .end_s = 8,
             .cpu_s = 2,
             .task = 1,
             .number = 3,
             .count = 140,
             .flags = kFolded,
             .wall_s = 2.5});
  const auto timeline = cluster.load("123").front();
  const auto& hot = row_named(timeline.rows, "hot");
  CHECK(hot.instances == 1 + 150);
  CHECK(hot.cpu_time_ns == ns(4.1));
  CHECK(hot.duration_ns == ns(0.1) + ns(3));
  CHECK(hot.time_ns == ns(0.1) + ns(3));
  CHECK((hot.flags & kFolded) != 0);
  CHECK(hot.longest_ns == ns(0.1));  // of those that were kept
}

TEST_CASE("a phase never ended is shown closed, with its flag") {
  ClusterFixture cluster;
  const auto runs = add_step(cluster, 1, 1);
  add_phase(cluster.db(), runs[0],
            {.path = "forgotten", .begin_s = 2, .end_s = 10, .cpu_s = 8, .flags = kUnclosed});
  const auto timeline = cluster.load("123").front();
  CHECK((row_named(timeline.rows, "forgotten").flags & kUnclosed) != 0);
  CHECK(says(timeline.missing, "never ended by the program"));
}

TEST_CASE("a step without phases has no row for what is outside of them") {
  ClusterFixture cluster;
  add_step(cluster, 1, 1);
  CHECK(find_row(detail(cluster), "(outside)") == nullptr);
}

TEST_CASE("a phase has what its tasks counted on all nodes, and a step what they counted in all") {
  ClusterFixture cluster;
  for (const char* node : {"n1", "n2"}) {
    const auto run = add_run(cluster.db(), {.node = node, .node_tasks = 2});
    for (int task = 0; task < 2; ++task) {
      add_phase(cluster.db(), run, {.path = "a", .begin_s = 1, .end_s = 2, .task = task});
      add_counter(cluster.db(), run, {.path = "a", .number = 1, .value = 30, .task = task});
      add_counter(cluster.db(), run,
                  {.path = "a", .number = 1, .event = "PAPI_TOT_CYC", .value = 10, .task = task});
      add_counter(cluster.db(), run, {.value = 100, .task = task});
    }
  }
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "a").events.instructions() == 120);
  CHECK(row_named(rows, "a").events.instructions_per_cycle() == doctest::Approx(3.0));
  CHECK(row_named(rows, "step 0").events.instructions() == 400);
  CHECK((row_named(rows, "step 0").flags & kSomeCounted) == 0);
}

TEST_CASE("a step of which some tasks could not be counted says so") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.node_tasks = 3});
  add_counter(cluster.db(), run, {.value = 100});
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "step 0").events.instructions() == 100);
  CHECK((row_named(rows, "step 0").flags & kSomeCounted) != 0);
}

TEST_CASE("instances of a phase that become one row are counted together") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  for (int i = 1; i <= 3; ++i) {
    add_phase(cluster.db(), run, {.path = "a", .begin_s = 1.0 * i, .end_s = i + 0.5, .number = i});
    add_counter(cluster.db(), run, {.path = "a", .number = i, .value = i});
  }
  CHECK(row_named(cluster.load("123").front().rows, "a").events.instructions() == 6);
}
