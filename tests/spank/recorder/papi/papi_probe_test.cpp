#include "spank/recorder/papi/papi_probe.h"

#include <doctest/doctest.h>

#include "tests/spank/recorder/papi/papi_fake.h"

using namespace sphase;
using sphase::testing::FakePapi;
using Names = std::vector<std::string>;

namespace {

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

Names first_names(const PapiWish& wish) {
  Names names;
  for (const auto& event : wish.events) names.push_back(event.names.front());
  return names;
}

}  // namespace

TEST_CASE("without events asked for, instructions and cycles and two that need not be there") {
  for (const char* asked : {"", "mpx", "+", "++"}) {
    const PapiWish wish = parse_papi_wish(asked);
    CHECK(first_names(wish) == Names{"PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_L3_TCM", "PAPI_FP_OPS"});
    CHECK_FALSE(wish.events[1].optional);
    CHECK(wish.events[2].optional);
    CHECK(wish.multiplex == (std::string(asked) == "mpx"));
  }
}

TEST_CASE("the word mpx is no event, an event twice is one, and nine are eight") {
  CHECK(first_names(parse_papi_wish("A+mpx+B+A")) == Names{"A", "B"});
  CHECK(parse_papi_wish("A+mpx").multiplex);
  const PapiWish many = parse_papi_wish("A+B+C+D+E+F+G+H+I+J");
  CHECK(many.events.size() == kMostEvents);
  CHECK(many.too_many == 2);
}

TEST_CASE("what the chip has is counted, by the first name that works") {
  FakePapi papi;
  const PapiPlan plan = probe_papi(papi.api(), "");
  CHECK(plan.tier.source == "papi-hw");
  CHECK(plan.tier.reason == "");
  CHECK(plan.events == Names{"PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_DP_OPS"});
  CHECK(plan.descriptors == 6);
  CHECK_FALSE(plan.multiplexed);
  CHECK(papi.multiplex_inits == 0);
  CHECK(papi.open_sets() == 0);
  CHECK(papi.open_files() == 0);
}

TEST_CASE("an unknown event is left out by name, the others are counted") {
  FakePapi papi;
  const PapiPlan plan = probe_papi(papi.api(), "PAPI_TOT_INS+PAPI_NONSENSE");
  CHECK(plan.events == Names{"PAPI_TOT_INS"});
  CHECK(plan.tier.reason == "not counted: PAPI_NONSENSE (code -7)");
}

TEST_CASE("PAPI is active although counting is forbidden: none, and why") {
  FakePapi papi;
  papi.kernel_errno = EACCES;
  for (const auto& [name, natives] : papi.known) papi.refused[name] = kPapiForbidden;
  const PapiPlan plan = probe_papi(papi.api(), "");
  CHECK(plan.tier.source == "none");
  CHECK(plan.events.empty());
  CHECK(plan.descriptors == 0);
  CHECK(plan.tier.reason == "the kernel forbids counting (kernel.perf_event_paranoid)");
  papi.kernel_errno = 0;  // it is PAPI that refuses: its own words, on those that matter
  CHECK(probe_papi(papi.api(), "").tier.reason ==
        "not counted: PAPI_TOT_INS (code -15), PAPI_TOT_CYC (code -15)");
}

TEST_CASE("a node without counters: none, and why") {
  FakePapi papi;
  papi.kernel_errno = ENOENT;
  papi.known.clear();
  const PapiPlan plan = probe_papi(papi.api(), "PAPI_TOT_INS");
  CHECK(plan.tier.source == "none");
  CHECK(has(plan.tier.reason, "no hardware counters (no PMU"));
}

TEST_CASE("PAPI that cannot be initialised: none, and nothing is tried") {
  FakePapi papi;
  papi.init_code = -6;
  const PapiPlan plan = probe_papi(papi.api(), "PAPI_TOT_INS");
  CHECK(plan.tier.source == "none");
  CHECK(plan.tier.reason == "PAPI cannot be initialised: code -6");
  CHECK(papi.reads == 0);
}

TEST_CASE("without mpx, events that do not fit together are left out from the end") {
  FakePapi papi;
  papi.counters = 2;
  const PapiPlan plan = probe_papi(papi.api(), "PAPI_TOT_INS+PAPI_TOT_CYC+PAPI_BR_MSP");
  CHECK(plan.events == Names{"PAPI_TOT_INS", "PAPI_TOT_CYC"});
  CHECK_FALSE(plan.multiplexed);
  CHECK(has(plan.tier.reason, "PAPI_BR_MSP (does not fit beside the others"));
  CHECK(probe_papi(papi.api(), "").tier.reason == "");  // the optional ones go silently
}

TEST_CASE("with mpx, events take turns only if they must, and derived ones do not") {
  FakePapi papi;
  const char* asked = "PAPI_TOT_INS+PAPI_TOT_CYC+PAPI_BR_MSP+PAPI_DP_OPS+mpx";
  CHECK_FALSE(probe_papi(papi.api(), asked).multiplexed);
  papi.counters = 4;
  const PapiPlan plan = probe_papi(papi.api(), asked);
  CHECK(plan.multiplexed);
  CHECK(plan.events == Names{"PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_BR_MSP"});
  CHECK(plan.descriptors == 3);
  CHECK(has(plan.tier.reason, "PAPI_DP_OPS (made of several counters"));
}

TEST_CASE("counters that somebody else holds are no counters") {
  FakePapi papi;
  papi.group_fails = true;
  const PapiPlan plan = probe_papi(papi.api(), "PAPI_TOT_INS");
  CHECK(plan.tier.source == "none");
  CHECK(has(plan.tier.reason, "PAPI_TOT_INS (code -8)"));
}

TEST_CASE("software events are a tier of their own") {
  FakePapi papi;
  papi.known["perf::TASK-CLOCK"] = 1;
  CHECK(probe_papi(papi.api(), "perf::TASK-CLOCK").tier.source == "papi-sw");
  CHECK(probe_papi(papi.api(), "perf::TASK-CLOCK+PAPI_TOT_INS").tier.source == "papi-hw");
}
