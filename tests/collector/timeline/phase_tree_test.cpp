#include "collector/timeline/phase_tree.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A batch step on n1 from 0 to `end_s` that uses a tenth of a CPU.
std::int64_t add_batch(ClusterFixture& cluster, double end_s) {
  const auto run = add_run(cluster.db(), {.end_s = end_s, .step = "batch"});
  add_samples(cluster.db(), run, 0, end_s, 0.1, 10 * kMiB);
  return run;
}

void add_step(ClusterFixture& cluster, const std::string& step, const std::string& node,
              double begin_s, double end_s, double cpus) {
  const auto run =
      add_run(cluster.db(), {.begin_s = begin_s, .end_s = end_s, .step = step, .node = node});
  add_samples(cluster.db(), run, begin_s, end_s, cpus);
}

void mark(ClusterFixture& cluster, std::int64_t batch, const std::string& path, double begin_s,
          double end_s, std::int64_t number = 1, std::int64_t depth = 0) {
  add_phase(cluster.db(), batch,
            {.path = path,
             .begin_s = begin_s,
             .end_s = end_s,
             .number = number,
             .depth = depth,
             .scope = "shell"});
}

}  // namespace

TEST_CASE("a job phase covers every node and step of the job in its interval") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "stage", 0, 5);
  mark(cluster, batch, "solve", 5, 20);
  add_step(cluster, "0", "n1", 6, 18, 2);
  add_step(cluster, "0", "n2", 6, 18, 4);
  const auto rows = cluster.load("123").front().rows;
  const auto& solve = row_named(rows, "solve");
  CHECK(solve.kind == UsageRow::Kind::kJobPhase);
  CHECK(solve.cpu_time_ns == ns(12 * 2 + 12 * 4) + ns(1.5));
  CHECK(solve.node_count == 2);
  CHECK((solve.flags & (kCrossed | kInterpolated)) == 0);
  CHECK(row_named(rows, "step 0").level == solve.level + 1);
  CHECK(row_named(rows, "stage").cpu_time_ns == ns(0.5));
  CHECK(*row_named(rows, "stage").wasted_node_s == doctest::Approx(5 * (1 - 0.025) + 5));
}

TEST_CASE("a step that crosses the edge of a job phase is split there, and flagged") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "first", 0, 7.5);
  mark(cluster, batch, "second", 7.5, 20);
  add_step(cluster, "0", "n1", 5, 18, 2);
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "first").cpu_time_ns == ns(2.5 * 2 + 0.75));
  CHECK(row_named(rows, "second").cpu_time_ns == ns(10.5 * 2 + 1.25));
  CHECK((row_named(rows, "first").flags & kCrossed) != 0);
  CHECK((row_named(rows, "second").flags & kCrossed) != 0);
  // It is listed where most of it lies.
  const auto& step = row_named(rows, "step 0");
  CHECK(&step > &row_named(rows, "second"));
  CHECK(step.level == 2);
}

TEST_CASE("a step that crosses an edge at which it was read is exact") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "first", 0, 8);
  add_step(cluster, "0", "n1", 5, 18, 2);
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "first").cpu_time_ns == ns(3 * 2 + 0.8));
  CHECK((row_named(rows, "first").flags & kCrossed) == 0);
}

TEST_CASE("job phases nest, and a step stands in the innermost one that holds it") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "solve", 2, 18);
  mark(cluster, batch, "solve/fine", 4, 12, 1, 1);
  add_step(cluster, "0", "n1", 5, 11, 1);
  add_step(cluster, "1", "n1", 13, 17, 1);
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "fine").level == 2);
  CHECK(row_named(rows, "step 0").level == 3);
  CHECK(row_named(rows, "step 1").level == 2);
  CHECK(row_named(rows, "batch").level == 1);
}

TEST_CASE("a step between job phases belongs to the job") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "a", 0, 5);
  add_step(cluster, "0", "n1", 8, 12, 1);
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "step 0").level == 1);
  const auto& outside = row_named(rows, "(outside)");
  CHECK(outside.time_ns == ns(15));
  CHECK(*outside.cpu_time_ns + *row_named(rows, "a").cpu_time_ns == *rows.front().cpu_time_ns);
}

TEST_CASE("phases in an interactive step are job phases too") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.step = "interactive"});
  add_samples(cluster.db(), run, 0, 10, 1);
  mark(cluster, run, "by hand", 2, 4);
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "by hand").kind == UsageRow::Kind::kJobPhase);
}

TEST_CASE("phases that a program marks in the job script are task phases of the batch step") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 10);
  add_phase(cluster.db(), batch, {.path = "solve", .begin_s = 2, .end_s = 4, .cpu_s = 0.2});
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "solve").kind == UsageRow::Kind::kTaskPhase);
  CHECK(row_named(rows, "solve").step == "batch");
}

TEST_CASE("the job script's step is not charged with the CPUs that its steps use") {
  ClusterFixture cluster;
  add_batch(cluster, 10);
  add_step(cluster, "0", "n1", 2, 8, 1);
  const auto with_step = cluster.load("123").front().rows;
  CHECK((row_named(with_step, "batch").flags & kScript) != 0);
  CHECK_FALSE(row_named(with_step, "batch").wasted_node_s.has_value());

  ClusterFixture alone;
  add_batch(alone, 10);
  const auto rows = alone.load("123").front().rows;
  CHECK((row_named(rows, "batch").flags & kScript) == 0);
  CHECK(row_named(rows, "batch").wasted_node_s.has_value());
}

TEST_CASE("a resized job's phase has the CPUs of each interval") {
  ClusterFixture cluster;
  const JobSpec job{.end_s = 20};
  add_job(cluster.db(), job);
  add_allocation(cluster.db(), job, {"n1", "n2", "n3"}, 0, 10, "RESIZING");
  add_allocation(cluster.db(), job, {"n1"}, 10, 20);
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "all", 0, 20);
  mark(cluster, batch, "edge", 5, 15);
  const auto timeline = cluster.load("123").front();
  CHECK(row_named(timeline.rows, "all").cpu_allocated_ns == ns(3 * 4 * 10 + 4 * 10));
  CHECK(*row_named(timeline.rows, "edge").cpus_allocated() == doctest::Approx(8));
  REQUIRE(timeline.nodes.size() == 3);
  CHECK(timeline.nodes[0].time_s == doctest::Approx(20));
  CHECK(timeline.nodes[1].time_s == doctest::Approx(10));
  CHECK(timeline.nodes[1].idle);
  CHECK(*timeline.nodes[1].wasted_node_s == doctest::Approx(10));
}

TEST_CASE("of a job whose numbers are not known nothing is shown as 0") {
  ClusterFixture cluster;
  const auto run =
      add_run(cluster.db(),
              {.job_cpus = {}, .step_cpus = {}, .job_memory_bytes = {}, .step_memory_bytes = {}});
  add_sample(cluster.db(), run, 0, {}, {});
  add_sample(cluster.db(), run, 10, {}, {});
  const auto rows = cluster.load("123").front().rows;
  for (const auto& row : rows) {
    CHECK_FALSE(row.cpu_time_ns.has_value());
    CHECK_FALSE(row.efficiency().has_value());
    CHECK_FALSE(row.memory_peak_bytes.has_value());
    CHECK_FALSE(row.wasted_node_s.has_value());
    CHECK_FALSE(row.io.read_bytes.has_value());
  }
}

TEST_CASE("a job and its phases hold what the steps inside counted, each once") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "solve", 5, 20);
  add_counter(cluster.db(), batch, {.value = 10});
  add_counter(cluster.db(), batch, {.path = "solve", .number = 1, .value = 7, .scope = "shell"});
  for (const char* node : {"n1", "n2"}) {
    const auto run = add_run(cluster.db(), {.begin_s = 6, .end_s = 18, .step = "0", .node = node});
    add_samples(cluster.db(), run, 6, 18, 1);
    add_counter(cluster.db(), run, {.value = 1000});
  }
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "step 0").events.instructions() == 2000);
  CHECK(row_named(rows, "solve").events.instructions() == 2007);
  CHECK(row_named(rows, "job").events.instructions() == 2010);
  CHECK((row_named(rows, "job").flags & kSomeCounted) == 0);
}

TEST_CASE("of a step that crosses the edge of a job phase it is not known what it counted there") {
  ClusterFixture cluster;
  const auto batch = add_batch(cluster, 20);
  mark(cluster, batch, "first", 0, 7.5);
  add_counter(cluster.db(), batch, {.path = "first", .number = 1, .value = 7, .scope = "shell"});
  const auto run = add_run(cluster.db(), {.begin_s = 1, .end_s = 9, .step = "0"});
  add_counter(cluster.db(), run, {.value = 1000});
  const auto rows = cluster.load("123").front().rows;
  const auto& first = row_named(rows, "first");
  CHECK(first.events.instructions() == 7);
  CHECK((first.flags & kSomeCounted) != 0);
}
