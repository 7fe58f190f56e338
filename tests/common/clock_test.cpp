#include "common/clock.h"

#include <doctest/doctest.h>

TEST_CASE("the clocks count nanoseconds and the monotonic one never goes back") {
  CHECK(sphase::epoch_ns() > 1'600'000'000'000'000'000);
  const auto before = sphase::monotonic_ns();
  CHECK(sphase::monotonic_ns() >= before);
}

TEST_CASE("a scheduler tick is between 0.1 and 20 ms") {
  CHECK(sphase::tick_ns() >= 100'000);
  CHECK(sphase::tick_ns() <= 20'000'000);
}
