#include "collector/timeline/job_starts.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

RunKey run(std::int64_t id, std::int64_t restart, double begin_s, std::string step = "0",
           std::string node = "n1") {
  return {id, restart, static_cast<std::int64_t>(begin_s * kSecond), std::move(step),
          std::move(node)};
}

}  // namespace

TEST_CASE("a run belongs to the start that it began in") {
  const auto starts = match_runs({{100, 0, 100, 200}, {100, 1, 300, 400}},
                                 {run(1, 0, 100.4), run(2, 1, 300.2), run(3, 1, 350)});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].record == 0);
  CHECK(starts[0].runs == std::vector<std::size_t>{0});
  CHECK(starts[1].runs == std::vector<std::size_t>{1, 2});
}

TEST_CASE("records have whole seconds: two seconds around them still match") {
  const auto starts = match_runs(
      {{100, 0, 100, 200}}, {run(1, 0, 98.1), run(2, 0, 202.9), run(3, 0, 97.9), run(4, 0, 203.1)});
  REQUIRE(starts[1].record == 0);
  CHECK(starts[1].runs == std::vector<std::size_t>{0, 1});
}

TEST_CASE("a job id that was used again does not take the older job's runs") {
  const auto starts =
      match_runs({{100, 0, 100, 200}, {9000, 0, 9000, {}}}, {run(1, 0, 150), run(2, 0, 9001)});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].runs == std::vector<std::size_t>{0});
  CHECK(starts[1].runs == std::vector<std::size_t>{1});
}

TEST_CASE("a record whose end nobody saw does not take the runs of a later one") {
  const auto starts =
      match_runs({{100, 0, 100, {}}, {9000, 0, 9000, {}}}, {run(1, 0, 150), run(2, 0, 9001)});
  CHECK(starts[0].runs == std::vector<std::size_t>{0});
  CHECK(starts[1].runs == std::vector<std::size_t>{1});
}

TEST_CASE("the restart count must agree as well as the time") {
  const auto starts = match_runs({{100, 0, 100, 200}}, {run(1, 1, 150)});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].record == 0);
  CHECK(starts[0].runs.empty());
  CHECK_FALSE(starts[1].record.has_value());
  CHECK(starts[1].restart_count == 1);
}

TEST_CASE("without records a step that is on a node again belongs to another start") {
  const auto starts =
      match_runs({}, {run(1, 0, 10, "batch"), run(2, 0, 11, "0"), run(3, 0, 11, "0", "n2"),
                      run(4, 0, 900, "batch"), run(5, 0, 901, "0")});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].runs == std::vector<std::size_t>{0, 1, 2});
  CHECK(starts[1].runs == std::vector<std::size_t>{3, 4});
}

TEST_CASE("without records restart counts are different starts, in order of time") {
  const auto starts = match_runs({}, {run(1, 1, 500, "batch"), run(2, 0, 10, "batch")});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].restart_count == 0);
  CHECK(starts[1].restart_count == 1);
}

TEST_CASE("a start that has not begun yet comes last") {
  const auto starts = match_runs({{100, 1, {}, {}}, {100, 0, 100, 200}}, {});
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].restart_count == 0);
}
