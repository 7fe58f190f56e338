#include "collector/timeline/usage_row.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

NodeUse node(double time_s, Maybe cpu_used_s, Maybe cpus, Maybe memory, Maybe limit) {
  NodeUse use;
  use.node = "n1";
  use.time_s = time_s;
  if (cpu_used_s) use.cpu_time_ns = *cpu_used_s * 1'000'000'000;
  if (cpus) use.cpu_allocated_ns = static_cast<std::int64_t>(time_s * 1e9) * *cpus;
  use.memory_peak_bytes = memory;
  use.memory_allocated_bytes = limit;
  return use;
}

}  // namespace

TEST_CASE("what is wasted is what the larger of the CPU share and the memory share leaves") {
  CHECK(*wasted_node_s(node(10, 20, 4, 100, 1000)) == doctest::Approx(5));  // CPU: half
  CHECK(*wasted_node_s(node(10, 20, 4, 900, 1000)) == doctest::Approx(1));  // memory: 90 %
}

TEST_CASE("a task phase wastes only the part of the node that its step holds") {
  NodeUse use = node(10, 20, 4, 100, 1000);
  use.cpu_share = 0.5;
  CHECK(*wasted_node_s(use) == doctest::Approx(2.5));
}

TEST_CASE("a node without any process wastes all of its time") {
  NodeUse use = node(10, {}, {}, {}, {});
  use.idle = true;
  CHECK(*wasted_node_s(use) == doctest::Approx(10));
}

TEST_CASE("with memory or CPU missing, waste is computed from the other; without both not at all") {
  CHECK(*wasted_node_s(node(10, 20, 4, {}, 1000)) == doctest::Approx(5));
  CHECK(*wasted_node_s(node(10, 20, 4, 100, {})) == doctest::Approx(5));
  CHECK(*wasted_node_s(node(10, {}, 4, 300, 1000)) == doctest::Approx(7));
  CHECK(*wasted_node_s(node(10, 20, {}, 300, 1000)) == doctest::Approx(7));
  CHECK_FALSE(wasted_node_s(node(10, {}, 4, {}, 1000)).has_value());
  CHECK_FALSE(wasted_node_s(node(10, 20, {}, 100, {})).has_value());
}

TEST_CASE("using more than was allocated wastes nothing, and never less than nothing") {
  CHECK(*wasted_node_s(node(10, 80, 4, {}, {})) == 0);
}

TEST_CASE("a node that told nothing wastes an unknown amount") {
  NodeUse use = node(10, {}, 4, {}, 1000);
  use.silent = true;
  CHECK_FALSE(wasted_node_s(use).has_value());
}

TEST_CASE("time after the recorder was last heard of is neither used nor wasted") {
  NodeUse use = node(10, 10, 4, {}, {});  // 10 CPU seconds in the 5 s that are known: half
  use.unknown_s = 5;
  CHECK(*wasted_node_s(use) == doctest::Approx(2.5));
  use.unknown_s = 10;
  CHECK_FALSE(wasted_node_s(use).has_value());
}

TEST_CASE("a sum over nodes is flagged where one of them does not know") {
  UsageRow row;
  row.nodes = {node(10, 20, 4, 100, 1000), node(10, {}, 4, 300, 1000)};
  measure_waste(row.nodes);
  total_up(row);
  CHECK(row.cpu_time_ns == 20'000'000'000);
  CHECK((row.flags & kPartial) != 0);
  CHECK((row.flags & kNoCpu) != 0);
  CHECK((row.flags & kNoMemory) == 0);
  CHECK(row.memory_peak_bytes == 300);
  CHECK(*row.wasted_node_s == doctest::Approx(5 + 7));
}

TEST_CASE("efficiency is not computed from the CPUs of some of the nodes") {
  UsageRow row;
  row.nodes = {node(10, 20, 4, {}, {}), node(10, 20, {}, {}, {})};
  total_up(row);
  CHECK_FALSE(row.cpu_allocated_ns.has_value());
  CHECK_FALSE(row.efficiency().has_value());
}

TEST_CASE("nothing known stays not known when it is added up") {
  Maybe total;
  std::uint32_t flags = 0;
  add(total, {}, flags);
  CHECK_FALSE(total.has_value());
  CHECK(flags == kPartial);
  add(total, 5, flags);
  CHECK(total == 5);
  add(total, INT64_MAX, flags);
  CHECK(total == INT64_MAX);  // and not less than nothing
}

TEST_CASE("nodes of two intervals are put together by name") {
  std::vector<NodeUse> uses = {node(10, 20, 4, 100, 1000)};
  NodeUse other = node(5, 1, 4, 800, 1000);
  NodeUse second = node(5, 2, 4, 1, 1000);
  second.node = "n2";
  measure_waste(uses);
  std::vector<NodeUse> more = {second, other};
  measure_waste(more);
  merge_nodes(uses, more);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].time_s == 15);
  CHECK(uses[0].cpu_time_ns == 21'000'000'000);
  CHECK(uses[0].memory_peak_bytes == 800);
  CHECK(*uses[0].wasted_node_s == doctest::Approx(5 + 1));
  CHECK(uses[1].node == "n2");
}
