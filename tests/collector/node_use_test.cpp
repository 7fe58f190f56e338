#include "collector/node_use.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

Timeline two_nodes() {
  Timeline timeline;
  timeline.begin_ns = at(0);
  timeline.end_ns = at(10);
  Allocation allocation;
  allocation.begin_ns = at(0);
  allocation.end_ns = at(10);
  allocation.node_count = 2;
  allocation.cpus = 12;
  allocation.nodes = {{"n1", {}, {}}, {"n2", {}, {}}};
  timeline.allocations.push_back(allocation);
  return timeline;
}

Run run_on(const std::string& node, const std::string& step, double begin_s, double end_s,
           double cpus) {
  Run run;
  run.node = node;
  run.step = step;
  run.begin_ns = at(begin_s);
  run.end_ns = at(end_s);
  run.ended = true;
  run.job_cpus = 4;
  run.step_cpus = 4;
  run.job_memory_bytes = 1000;
  run.step_nodes = 1;
  std::vector<Sample> samples(2);
  samples[0].time_ns = run.begin_ns;
  samples[1].time_ns = run.end_ns;
  samples[0].cpu_time_ns = 0;
  samples[1].cpu_time_ns = ns((end_s - begin_s) * cpus);
  samples[0].memory_bytes = samples[1].memory_bytes = 100;
  run.samples = SampleSeries(samples, true);
  return run;
}

}  // namespace

TEST_CASE(
    "CPUs of a node that the records do not tell come from its runs, and the rest is shared") {
  Timeline timeline = two_nodes();
  timeline.runs.push_back(run_on("n1", "0", 1, 9, 1));
  const auto spans = node_spans(timeline);
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].cpus == 4);
  CHECK(spans[0].memory_bytes == 1000);
  CHECK(spans[1].cpus == 8);  // 12 - 4
  CHECK_FALSE(spans[1].memory_bytes.has_value());
}

TEST_CASE("a rest that cannot be shared evenly is not known") {
  Timeline timeline = two_nodes();
  timeline.allocations.front().cpus = 7;
  const auto spans = node_spans(timeline);
  CHECK_FALSE(spans[0].cpus.has_value());
  CHECK_FALSE(spans[1].cpus.has_value());
}

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
  CHECK(*wasted_node_s(uses[0]) == doctest::Approx(0));  // busy as long as it is known
}

TEST_CASE("the last allocation ends where a step saw the job's end, within the record's second") {
  Timeline timeline = two_nodes();
  timeline.end_ns = at(10.7);
  CHECK(node_spans(timeline)[1].end_ns == at(10.7));
  timeline.end_ns = at(30);  // this is no rounding
  CHECK(node_spans(timeline)[1].end_ns == at(10));
}

TEST_CASE("a resize is when the last step on the nodes given back had ended, within its second") {
  Timeline timeline = two_nodes();
  timeline.allocations.front().end_ns = at(5);
  Allocation smaller;
  smaller.begin_ns = at(5);
  smaller.end_ns = at(10);
  smaller.nodes = {{"n1", {}, {}}};
  timeline.allocations.push_back(smaller);
  timeline.runs.push_back(run_on("n1", "0", 1, 5.9, 1));  // n1 stays: this tells nothing
  timeline.runs.push_back(run_on("n2", "0", 1, 5.4, 1));
  const auto spans = node_spans(timeline);
  REQUIRE(spans.size() == 3);
  CHECK(spans[1].end_ns == at(5.4));
  CHECK(spans[2].begin_ns == at(5.4));
  CHECK(spans[2].end_ns == at(10));
}
