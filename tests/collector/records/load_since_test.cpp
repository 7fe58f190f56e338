#include "collector/records/load_since.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("slurmctld need not send again what it has sent for the same jobs or for more") {
  LoadSince since;
  CHECK(since.time_for({1, 2}, false) == 0);
  since.answered(500, {1, 2}, false);
  CHECK(since.time_for({1, 2}, false) == 500);
  CHECK(since.time_for({2}, false) == 500);
  CHECK(since.time_for({1, 2, 3}, false) == 0);
  CHECK(since.time_for({1}, true) == 0);
  since.answered(600, {1}, true);
  CHECK(since.time_for({7}, false) == 600);
  CHECK(since.time_for({}, true) == 600);
}

TEST_CASE("after slurmctld was away everything is asked for again") {
  LoadSince since;
  since.answered(500, {1}, false);
  since.forget();
  CHECK(since.time_for({1}, false) == 0);
}
