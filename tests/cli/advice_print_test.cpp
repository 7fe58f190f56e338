// Source: cli/advice_print.cpp.
#include "cli/advice_print.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collector/report/format.h"
#include "tests/cli/learned_fixture.h"

using namespace sphase;
using namespace sphase::testing;
using nlohmann::json;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    most = std::max(most, width(text.substr(at, end - at)));
    at = end + 1;
  }
  return most;
}

Learned good() { return learned_of({run_of(1), run_of(2), run_of(3), run_of(4)}); }

/// Runs on 1 to 8 nodes that scale: 20 + 80/n.
Learned scaling() {
  std::vector<ObservedJob> runs;
  for (const std::int64_t n : {1, 2, 4, 8}) {
    auto run = run_of(n);
    run.phases = {seen("", n, n, 20 + 80 / static_cast<double>(n))};
    runs.push_back(run);
  }
  return learned_of(runs);
}

}  // namespace

TEST_CASE("the text says what to ask for, from what, and the plan") {
  const std::string text = advice_text(good(), false);
  CAPTURE(text);
  CHECK(has(text, "Profile     1001/solver\n"));
  CHECK(has(text, "4 runs; 1 of 4 nodes was used"));
  CHECK(has(text,
            "Advice      1 node, 2 CPUs per node, 1.2 GiB of memory per node, a time limit of "
            "7m00s"));
  CHECK(has(text, "100 % of the last runs"));
  CHECK(has(text, "solve"));
  CHECK(text.find("\nread ") < text.find("\nsolve "));
  CHECK_FALSE(has(text, "Sizes of"));
  CHECK(widest(text) <= 100);
}

TEST_CASE("too few runs: the text says what is missing, and nothing is advised") {
  const auto few = learned_of({run_of(1), run_of(2)});
  const std::string text = advice_text(few, false);
  CHECK(has(text, "2 of the 3 runs that are needed before advice is given"));
  CHECK(has(text, "Advice      none yet"));
  CHECK_FALSE(has(text, "Plan"));
  CHECK(widest(text) <= 100);
  const auto told = json::parse(advice_json(few, false));
  CHECK(told["enough"] == false);
  CHECK(told["advice"].is_null());
  CHECK(told["reason"] == "2 of the 3 runs that are needed before advice is given");
}

TEST_CASE("a kill for memory and a reached limit have a note each") {
  const auto killed = advice_text(learned_of({run_of(1, 9, kObservedOom)}), true);
  CHECK(has(killed, "Advice      5.9 GiB of memory per node"));  // 1.5 x 4000 MiB
  CHECK(has(killed, "Note        a run was killed for memory"));
  CHECK(has(killed, "No sizes can be compared"));
  const auto late = advice_text(
      learned_of({run_of(1), run_of(2), run_of(3), run_of(4, 9, kObservedTimeout)}), false);
  CHECK(has(late, "a run reached its time limit"));
  CHECK(widest(killed) <= 100);
  CHECK(widest(late) <= 100);
}

TEST_CASE("sizes are listed with the best one marked") {
  const std::string text = advice_text(scaling(), true);
  CAPTURE(text);
  CHECK(has(text, "Sizes of the whole job"));
  CHECK(has(text, "node-seconds"));
  CHECK(has(text, "  best\n"));
  CHECK(widest(text) <= 100);
}

TEST_CASE("JSON has units in its names, and null for what is not known") {
  const auto told = json::parse(advice_json(good(), true));
  CHECK(told["profile"] == "1001/solver");
  CHECK(told["runs"] == 4);
  CHECK(told["advice"]["nodes"] == 1);
  CHECK(told["advice"]["memory_bytes"] == 1200LL << 20);
  CHECK(told["advice"]["time_limit_s"] == 420);
  CHECK(told["confidence_ratio"] == 1.0);
  CHECK(told["phases"].size() == 2);
  CHECK(told["phases"][1]["path"] == "solve");
  CHECK(told["phases"][1]["time"]["expected_s"] == 60.0);
  CHECK(told["phases"][1]["efficiency_ratio"].is_null());
  CHECK(told["phases"][1]["sizes"].size() == 1);
  const auto shaped = json::parse(advice_json(scaling(), true));
  CHECK(shaped["job"]["sizes"].size() == 8);
  CHECK(shaped["job"]["model"]["per_node_share_s"].get<double>() == doctest::Approx(80));
  CHECK_FALSE(json::parse(advice_json(scaling(), false))["job"].contains("sizes"));
}

TEST_CASE("names that came out of a job cannot move the terminal's cursor") {
  auto runs = std::vector<ObservedJob>{run_of(1), run_of(2), run_of(3)};
  for (auto& run : runs) {
    run.name = run.partition = "\x1b[2J";
    run.phases[1].path = "\x1b[31m\xff";
  }
  const auto learned = learned_of(runs);
  CHECK_FALSE(has(advice_text(learned, true), "\x1b"));
  CHECK_NOTHROW(json::parse(advice_json(learned, true)));
}
