#include "collector/timeline/intervals.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("intervals that touch or overlap become one, empty ones go") {
  CHECK(unite({{5, 9}, {0, 3}, {3, 4}, {8, 12}, {20, 20}}) ==
        std::vector<Interval>{{0, 4}, {5, 12}});
  CHECK(unite({}).empty());
}

TEST_CASE("time covered twice counts once") {
  CHECK(total_length(unite({{0, 10}, {5, 15}, {5, 6}})) == 15);
}

TEST_CASE("the rest of an interval is what lies in none of the others") {
  CHECK(complement({0, 20}, {{2, 5}, {8, 12}}) == std::vector<Interval>{{0, 2}, {5, 8}, {12, 20}});
  CHECK(complement({0, 20}, {{0, 20}}).empty());
  CHECK(complement({0, 20}, {}) == std::vector<Interval>{{0, 20}});
  CHECK(complement({10, 20}, {{0, 12}, {18, 30}}) == std::vector<Interval>{{12, 18}});
  CHECK(complement({10, 20}, {{30, 40}}) == std::vector<Interval>{{10, 20}});
}
