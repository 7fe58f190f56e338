#include "collector/timeline/node_spans.h"

#include <doctest/doctest.h>

#include "tests/collector/two_nodes.h"

using namespace sphase;
using namespace sphase::testing;

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

TEST_CASE("while a job is suspended it holds no node") {
  Timeline timeline = two_nodes();
  timeline.suspensions = {{at(2), at(4)}, {at(7), {}}};
  timeline.end_ns = at(10);
  const auto spans = node_spans(timeline);
  REQUIRE(spans.size() == 4);
  CHECK(spans[0].begin_ns == at(0));
  CHECK(spans[0].end_ns == at(2));
  CHECK(spans[1].begin_ns == at(4));
  CHECK(spans[1].end_ns == at(7));
  CHECK(spans[1].node == spans[0].node);
}
