#include "collector/timeline/event_counts.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

std::vector<Counted> part(Maybe instructions, Maybe cycles) {
  return {{"PAPI_TOT_CYC", cycles, {}, {}}, {"PAPI_TOT_INS", instructions, {}, {}}};
}

}  // namespace

TEST_CASE("events of several tasks are summed, and ratios are those of the sums") {
  EventCounts counts;
  counts.add_part(part(3000, 1000));
  counts.add_part(part(1000, 1000));
  CHECK(counts.instructions() == 4000);
  CHECK(counts.instructions_per_cycle() == doctest::Approx(2.0));
  CHECK_FALSE(counts.partial());
  CHECK_FALSE(counts.scaled());
}

TEST_CASE("nothing counted is not 0") {
  EventCounts counts;
  counts.add_part({});
  CHECK(counts.empty());
  CHECK_FALSE(counts.instructions());
  CHECK_FALSE(counts.instructions_per_cycle());
  CHECK_FALSE(counts.gflops(1'000'000));
  CHECK_FALSE(counts.partial());  // there is nothing to be a part of
}

TEST_CASE("a sum of some tasks says so, and gives no ratio with a sum of others") {
  EventCounts counts;
  counts.add_part(part(3000, 1000));
  counts.add_part(part(3000, std::nullopt));
  CHECK(counts.partial());
  CHECK(counts.instructions() == 6000);
  CHECK_FALSE(counts.instructions_per_cycle());
}

TEST_CASE("a task without counters makes the sums partial, and leaves ratios alone") {
  EventCounts counts;
  counts.add_part(part(3000, 1000));
  counts.add_part({});
  CHECK(counts.partial());
  CHECK(counts.instructions_per_cycle() == doctest::Approx(3.0));
}

TEST_CASE("an event that took turns is scaled up, and says so") {
  EventCounts counts;
  counts.add_part({{"PAPI_BR_MSP", 100, 1000, 250}});
  CHECK(counts.count("PAPI_BR_MSP") == doctest::Approx(400.0));
  CHECK(counts.scaled());
  EventCounts always;
  always.add_part({{"PAPI_BR_MSP", 100, 1000, 1000}});
  CHECK(always.count("PAPI_BR_MSP") == doctest::Approx(100.0));
  CHECK_FALSE(always.scaled());
}

TEST_CASE("an event that never had its turn although nothing happened is 0, not infinite") {
  EventCounts counts;
  counts.add_part({{"PAPI_BR_MSP", 0, 0, 0}});
  CHECK(counts.count("PAPI_BR_MSP") == 0);
}

TEST_CASE("cache misses and floating-point operations are taken from the best event there is") {
  EventCounts counts;
  counts.add_part({{"PAPI_TOT_INS", 2'000'000, {}, {}},
                   {"perf::CACHE-MISSES", 9000, {}, {}},
                   {"PAPI_DP_OPS", 500'000, {}, {}}});
  CHECK(counts.misses_per_kilo_instruction() == doctest::Approx(4.5));
  CHECK(counts.gflops(1'000'000) == doctest::Approx(0.5));
  counts.add_part({{"PAPI_TOT_INS", 2'000'000, {}, {}}, {"PAPI_L3_TCM", 100, {}, {}}});
  CHECK_FALSE(counts.misses_per_kilo_instruction());  // of one task the one, of another the other
}

TEST_CASE("sums add up in any order") {
  EventCounts a, b, both, turned;
  a.add_part(part(10, 5));
  b.add_part({{"PAPI_L3_TCM", 7, 100, 50}});
  both.add(a);
  both.add(b);
  turned.add(b);
  turned.add(a);
  CHECK(both.events().size() == 3);
  for (const auto& event : both.events()) CHECK(turned.count(event.name) == event.count);
  CHECK(both.partial());
  CHECK(both.scaled());
}
