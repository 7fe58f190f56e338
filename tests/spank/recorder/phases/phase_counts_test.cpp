#include <doctest/doctest.h>

#include "spank/recorder/phases/phase_row.h"

using namespace sphase;

namespace {

Edge edge(std::vector<PapiCount> counts) {
  Edge edge;
  edge.counts = std::make_shared<const std::vector<PapiCount>>(std::move(counts));
  return edge;
}

PapiCount shared(std::int64_t value, std::int64_t enabled_ns, std::int64_t running_ns) {
  return {value, enabled_ns, running_ns};
}

}  // namespace

TEST_CASE("a phase has what was counted between its edges, event by event") {
  const auto counts = counts_between(edge({{100}, {7}}), edge({{350}, {7}}));
  REQUIRE(counts.size() == 2);
  CHECK(counts[0].value == 250);
  CHECK(counts[1].value == 0);  // counted, and nothing happened
  CHECK_FALSE(counts[0].time_enabled_ns);
}

TEST_CASE("what is not known at an edge is not known of the phase") {
  CHECK(counts_between(Edge(), Edge()).empty());
  CHECK_FALSE(counts_between(edge({{std::nullopt}}), edge({{5}}))[0].value);
  CHECK_FALSE(counts_between(edge({{5}}), edge({{std::nullopt}}))[0].value);
  const auto late = counts_between(Edge(), edge({{5}}));
  REQUIRE(late.size() == 1);
  CHECK_FALSE(late[0].value);  // not 5: it may have counted before
  CHECK(counts_between(edge({{5}}), Edge()).empty());
}

TEST_CASE("a count that goes down is no count") {
  CHECK_FALSE(counts_between(edge({{500}}), edge({{400}}))[0].value);
}

TEST_CASE("events that took turns keep what was seen and both times") {
  const auto counts =
      counts_between(edge({shared(1000, 10'000, 5'000)}), edge({shared(1600, 30'000, 9'000)}));
  CHECK(counts[0].value == 600);
  CHECK(counts[0].time_enabled_ns == 20'000);
  CHECK(counts[0].time_running_ns == 4'000);
}

TEST_CASE("an event that ran less than 1 % of a phase has times and no value") {
  const auto counts =
      counts_between(edge({shared(1000, 10'000, 5'000)}), edge({shared(1001, 1'010'000, 14'999)}));
  CHECK_FALSE(counts[0].value);
  CHECK(counts[0].time_enabled_ns == 1'000'000);
  CHECK(counts[0].time_running_ns == 9'999);
}

TEST_CASE("a task that did nothing in a phase counted nothing, turns or not") {
  const auto same = shared(1000, 10'000, 5'000);
  CHECK(counts_between(edge({same}), edge({same}))[0].value == 0);
}

TEST_CASE("a part of counts is a part of each, and nothing becomes known by it") {
  const auto part = part_of({{100}, {std::nullopt}, shared(10, 400, 200)}, 0.25);
  CHECK(part[0].value == 25);
  CHECK_FALSE(part[1].value);
  CHECK(part[2].time_enabled_ns == 100);
  CHECK(part[2].time_running_ns == 50);
}
