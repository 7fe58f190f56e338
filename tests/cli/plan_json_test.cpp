// Source: cli/plan_json.cpp.
#include "cli/plan_json.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "job_submit/tell.h"

using namespace sphase;

namespace {

Advice advice_of(int phases) {
  Advice advice;
  std::memset(&advice, 0, sizeof(advice));
  advice.head.made_s = 1764536000;
  advice.head.runs = 14;
  std::strcpy(advice.head.policy, "efficiency>=0.7");
  for (int i = 0; i < phases; ++i) {
    AdvicePhase& phase = advice.phase[advice.head.phases++];
    const char* const path = i == 0 ? "solve" : "od\"d\\ \x01 \xc3\xa9";
    std::snprintf(phase.path, sizeof(phase.path), "%s", path);
    phase.nodes = 4;
    phase.runs = 14;
    phase.memory_bytes = (5120ULL << 20) - static_cast<unsigned>(i);
    phase.time_s = 61.5F;
    phase.time_low_s = 50.1F;
    phase.time_high_s = i == 0 ? 75.0F : 1234567.0F;
  }
  return advice;
}

}  // namespace

TEST_CASE("a plan has this form") {
  CHECK(plan_json("1001/solver", advice_of(1)) ==
        R"({"version":1,"profile":"1001/solver","made":1764536000,"policy":"efficiency>=0.7",)"
        R"("runs":14,"phases":[{"path":"solve","nodes":4,"memory_mib":5120,"time_s":61.5,)"
        R"("time_low_s":50.1,"time_high_s":75,"runs":14}]})");
}

TEST_CASE("a plan is JSON whatever the names are") {
  const auto plan = nlohmann::json::parse(plan_json("1/\"\n\xff", advice_of(2)));
  CHECK(plan["profile"] == "1/\"??");
  CHECK(plan["phases"][1]["path"] == "od\"d\\ ? ??");
  CHECK(plan["phases"][1]["memory_mib"] == 5120);  // rounded up
  CHECK(nlohmann::json::parse(plan_json("", advice_of(0)))["phases"].empty());
}

TEST_CASE("the job_submit plugin prints the same plan") {
  Decision decision;
  decision.mode = ResizeMode::kApply;
  for (const int phases : {1, 2, 24}) {
    sphase_answer answer{};
    tell_plan("1001/solver", decision, advice_of(phases), answer);
    CHECK(std::string(answer.plan) == plan_json("1001/solver", advice_of(phases)));
  }
}
