// Source: collector/timeline/phase_summary.cpp.
#include <doctest/doctest.h>

#include "collector/timeline/phase_tree.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("instances of a path are one row with their spread") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {});
  add_samples(cluster.db(), run, 0, 10, 1);
  const double length[] = {1, 3, 2};
  double begin = 0;
  for (int i = 0; i < 3; ++i) {
    add_phase(cluster.db(), run,
              {.path = "it",
               .begin_s = begin,
               .end_s = begin + length[i],
               .cpu_s = length[i],
               .number = i + 1,
               .memory_peak_bytes = 100 * (i + 1)});
    begin += length[i];
  }
  const auto timeline = cluster.load("123").front();
  const auto& it = row_named(timeline.rows, "it");
  CHECK(it.instances == 3);
  CHECK(it.time_ns == ns(6));
  CHECK(it.shortest_ns == ns(1));
  CHECK(it.longest_ns == ns(3));
  CHECK(it.cpu_time_ns == ns(6));
  CHECK(it.memory_peak_bytes == 300);
  CHECK(it.number == 0);
  CHECK(*it.cpus_allocated() == doctest::Approx(4));
  int listed = 0;
  for (const auto& row : timeline.detail) listed += row.name == "it" ? 1 : 0;
  CHECK(listed == 3);
}

TEST_CASE("instances that overlap, as tasks drift apart, count their time once") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.node_tasks = 2});
  add_samples(cluster.db(), run, 0, 10, 0, 0);
  for (int task = 0; task < 2; ++task) {
    for (int i = 0; i < 2; ++i) {
      const double begin = 1 + 2 * i + task;
      add_phase(cluster.db(), run,
                {.path = "it",
                 .begin_s = begin,
                 .end_s = begin + 2,
                 .cpu_s = 0,
                 .task = task,
                 .number = i + 1,
                 .memory_peak_bytes = 0});
    }
  }
  const auto timeline = cluster.load("123").front();
  const auto& it = row_named(timeline.rows, "it");  // #1 from 1 to 4, #2 from 3 to 6
  CHECK(it.duration_ns == ns(6));
  CHECK(it.time_ns == ns(5));
  CHECK(*it.wasted_node_s == doctest::Approx(5));
  CHECK(*it.cpus_allocated() == doctest::Approx(4));
}

TEST_CASE("imbalance over several instances weighs each by its time") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.node_tasks = 2});
  const double cpu[2][2] = {{4, 2}, {1, 1}};  // [instance][task]
  for (int i = 0; i < 2; ++i) {
    for (int task = 0; task < 2; ++task) {
      add_phase(cluster.db(), run,
                {.path = "it",
                 .begin_s = 1.0 + 4 * i,
                 .end_s = 5.0 + 4 * i,
                 .cpu_s = cpu[i][task],
                 .task = task,
                 .number = i + 1});
    }
  }
  const auto timeline = cluster.load("123").front();
  CHECK(*row_named(timeline.rows, "it").imbalance_cpu == doctest::Approx((4.0 + 1) / (3 + 1)));
}

TEST_CASE("a few steps are listed, many of one shape become one row, others stay apart") {
  ClusterFixture cluster;
  const auto add = [&](int step, const char* phase) {
    const auto run =
        add_run(cluster.db(),
                {.begin_s = 10.0 * step, .end_s = 10.0 * step + 5, .step = std::to_string(step)});
    add_samples(cluster.db(), run, 10.0 * step, 10.0 * step + 5, 1);
    add_phase(cluster.db(), run,
              {.path = phase, .begin_s = 10.0 * step + 1, .end_s = 10.0 * step + 3, .cpu_s = 2});
  };
  for (int step = 0; step < 8; ++step) add(step, "solve");
  CHECK(find_row(cluster.load("123").front().rows, "step 7") != nullptr);
  for (int step = 8; step < 12; ++step) add(step, "solve");
  add(12, "other");
  const auto timeline = cluster.load("123").front();
  const auto& steps = row_named(timeline.rows, "steps 0-11");
  CHECK(steps.instances == 12);
  CHECK(steps.cpu_time_ns == ns(12 * 5));
  CHECK(row_named(timeline.rows, "solve").instances == 12);
  CHECK(row_named(timeline.rows, "step 12").instances == 1);
  CHECK(find_row(timeline.detail, "step 11") != nullptr);
}

TEST_CASE("job phases of one name hold the steps of all their instances") {
  ClusterFixture cluster;
  const auto batch = add_run(cluster.db(), {.end_s = 100, .step = "batch"});
  add_samples(cluster.db(), batch, 0, 100, 0);
  for (int i = 0; i < 10; ++i) {
    add_phase(cluster.db(), batch,
              {.path = "iteration",
               .begin_s = 10.0 * i,
               .end_s = 10.0 * i + 9,
               .number = i + 1,
               .scope = "shell"});
    const auto run = add_run(
        cluster.db(), {.begin_s = 10.0 * i + 1, .end_s = 10.0 * i + 8, .step = std::to_string(i)});
    add_samples(cluster.db(), run, 10.0 * i + 1, 10.0 * i + 8, 2);
  }
  const auto rows = cluster.load("123").front().rows;
  CHECK(row_named(rows, "iteration").instances == 10);
  CHECK(row_named(rows, "steps 0-9").level == row_named(rows, "iteration").level + 1);
  CHECK(row_named(rows, "iteration").cpu_time_ns == ns(10 * 14));
}

TEST_CASE("I/O of instances that overlap counts once") {
  ClusterFixture cluster;
  const auto run = add_run(cluster.db(), {.node_tasks = 2});
  add_samples(cluster.db(), run, 0, 10, 1);  // 1000 B a second
  for (int task = 0; task < 2; ++task) {
    for (int i = 0; i < 3; ++i) {
      const double begin = 1 + 2 * i + task;  // #1 from 1 to 4, #2 from 3 to 6, #3 from 5 to 8
      add_phase(cluster.db(), run,
                {.path = "it",
                 .begin_s = begin,
                 .end_s = begin + 2,
                 .cpu_s = 1,
                 .task = task,
                 .number = i + 1});
    }
  }
  const auto timeline = cluster.load("123").front();
  CHECK(row_named(timeline.rows, "it").io.read_call_bytes == 7000);
  CHECK(row_named(timeline.detail, "it").io.read_call_bytes == 3000);
}

TEST_CASE("I/O of steps that run side by side adds up") {
  ClusterFixture cluster;
  for (int step = 0; step < 10; ++step) {
    const auto run = add_run(cluster.db(), {.step = std::to_string(step)});
    add_samples(cluster.db(), run, 0, 10, 0.1);
  }
  const auto timeline = cluster.load("123").front();
  CHECK(row_named(timeline.rows, "steps 0-9").io.read_call_bytes == 100'000);
}
