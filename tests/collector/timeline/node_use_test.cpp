#include "collector/timeline/node_use.h"

#include <doctest/doctest.h>

#include "tests/collector/two_nodes.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a node where no step ran is idle") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 9, 1));
  const auto uses = NodeUsage(timeline).of_job(at(0), at(10));
  REQUIRE(uses.size() == 2);
  CHECK_FALSE(uses[0].idle);
  CHECK(uses[1].idle);
  CHECK(uses[1].cpu_time_ns == 0);
}

TEST_CASE("a node of a step that told nothing is silent, not idle") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 9, 1));
  timeline.runs.back().step_nodes = 2;
  const auto uses = NodeUsage(timeline).of_job(at(0), at(10));
  CHECK(uses[1].silent);
  CHECK_FALSE(uses[1].cpu_time_ns.has_value());
  // Before that step began nothing is missing.
  CHECK(NodeUsage(timeline).of_job(at(0), at(0.5))[1].idle);
}

TEST_CASE("a node with a notice that it was not active is silent") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 9, 1));
  timeline.notices.push_back({"0", "n2", std::string(notice::kNotActive), "why", at(1)});
  CHECK(NodeUsage(timeline).of_job(at(0), at(10))[1].silent);
}

TEST_CASE("of a job without any telemetry every node is silent") {
  const Timeline timeline = two_nodes();
  for (const auto& use : NodeUsage(timeline).of_job(at(0), at(10))) CHECK(use.silent);
}

TEST_CASE("steps on a node at the same time add up, others do not") {
  CHECK(stacked_peak({{0, 10, 100}, {5, 15, 50}, {12, 20, 90}}) == 150);
  CHECK(stacked_peak({{0, 10, 100}, {10, 20, 50}}) == 100);
  CHECK_FALSE(stacked_peak({}).has_value());
}

TEST_CASE("a step inside the interval counts by its own samples, one across is read at the edge") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 3, 2));
  timeline.runs.push_back(run_on("n1", "1", 4, 8, 2));
  const NodeUsage usage(timeline);
  const auto whole = usage.of_job(at(0), at(10));
  CHECK(whole[0].cpu_time_ns == ns(12));
  CHECK((whole[0].flags & kCrossed) == 0);
  const auto part = usage.of_job(at(0), at(6));
  CHECK(part[0].cpu_time_ns == ns(4 + 4));
  CHECK((part[0].flags & kCrossed) != 0);
}

TEST_CASE("after the recorder was last heard of nothing is known of its node") {
  Timeline timeline = two_nodes();
  Run run = run_on("n1", "0", 0, 4, 4);
  run.ended = false;
  run.lost = true;
  timeline.runs.push_back(run);
  const auto uses = NodeUsage(timeline).of_job(at(0), at(10));
  CHECK(uses[0].unknown_s == doctest::Approx(6));
  CHECK((uses[0].flags & kRecorderLost) != 0);
  CHECK(*uses[0].wasted_node_s == doctest::Approx(0));  // busy as long as it is known
  CHECK(NodeUsage(timeline).of_job(at(5), at(10))[0].silent);
}

TEST_CASE("another step on the node does not tell what the lost one did") {
  Timeline timeline = two_nodes();
  Run run = run_on("n1", "0", 0, 4, 4);
  run.ended = false;
  run.lost = true;
  timeline.runs.push_back(run);
  timeline.runs.push_back(run_on("n1", "batch", 0, 10, 0));
  const auto uses = NodeUsage(timeline).of_job(at(0), at(10));
  CHECK(uses[0].unknown_s == doctest::Approx(6));
  CHECK(*uses[0].wasted_node_s == doctest::Approx(0));
  CHECK((uses[0].flags & kPartial) != 0);
}

TEST_CASE("a peak of memory in one phase does not excuse the others") {
  Timeline timeline = two_nodes();
  Run run = run_on("n1", "0", 0, 10, 0);
  std::vector<Sample> samples(11);
  for (int i = 0; i <= 10; ++i) {
    samples[static_cast<std::size_t>(i)].time_ns = at(i);
    samples[static_cast<std::size_t>(i)].cpu_time_ns = 0;
    samples[static_cast<std::size_t>(i)].memory_bytes = i == 1 ? 1000 : 0;  // all there is, once
  }
  run.samples = SampleSeries(samples);
  for (int i = 0; i < 2; ++i) {
    PhaseMark mark;
    mark.path = i == 0 ? "peak" : "rest";
    mark.begin_ns = at(5 * i);
    mark.end_ns = at(5 * i + 5);
    run.phases.push_back(mark);
  }
  timeline.runs.push_back(run);
  const NodeUsage usage(timeline);
  CHECK(*usage.of_job(at(0), at(10))[0].wasted_node_s == doctest::Approx(5));
  CHECK(*usage.waste_of_run(timeline.runs[0], at(0), at(10)) == doctest::Approx(5));
  CHECK(*usage.of_job(at(0), at(5))[0].wasted_node_s == doctest::Approx(0));
}

TEST_CASE("waste of a job adds up over its parts") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 3, 2));
  timeline.runs.push_back(run_on("n1", "1", 4, 8, 4));
  timeline.runs.push_back(run_on("n2", "1", 4, 8, 1));
  const NodeUsage usage(timeline);
  const auto waste = [&](double begin_s, double end_s) {
    double sum = 0;
    for (const auto& use : usage.of_job(at(begin_s), at(end_s))) sum += *use.wasted_node_s;
    return sum;
  };
  CHECK(waste(0, 10) == doctest::Approx(waste(0, 3.5) + waste(3.5, 10)));
  CHECK(waste(1, 3) == doctest::Approx(2 * 0.5 + 2));
}

TEST_CASE("edges of a phase are merged over the tasks of the node") {
  Run run = run_on("n1", "0", 0, 10, 1);
  const auto mark = [&](const char* path, double begin_s, double end_s, int task,
                        std::int64_t depth, std::uint32_t flags) {
    PhaseMark one;
    one.path = path;
    one.begin_ns = at(begin_s);
    one.end_ns = at(end_s);
    one.task = task;
    one.depth = depth;
    one.flags = flags;
    run.phases.push_back(one);
  };
  mark("a", 1, 4, 0, 0, 0);
  mark("a", 2, 5, 1, 0, 0);
  mark("a/b", 2, 3, 0, 1, 0);        // inside
  mark("hot", 6, 9, 0, 0, kFolded);  // holds more than itself
  CHECK(phase_cuts(run) == std::vector<std::int64_t>{at(1), at(5)});
}
