#include "collector/watch.h"

#include <doctest/doctest.h>

using namespace sphase;

using Lines = std::vector<std::string>;

TEST_CASE("an interval has a unit, seconds by default") {
  CHECK(parse_interval("60") == 60);
  CHECK(parse_interval("60s") == 60);
  CHECK(parse_interval("5m") == 300);
  CHECK(parse_interval("1h") == 3600);
  CHECK(parse_interval("24h") == 86400);
  for (const char* wrong : {"", "s", "0", "0s", "-5", "5d", "5 m", "1.5h", "25h", "60ss", "x",
                            "99999999999999999999"}) {
    INFO(wrong);
    CHECK_FALSE(parse_interval(wrong));
  }
}

TEST_CASE("failures double the wait up to a quarter of an hour, a good round ends that") {
  Backoff backoff(60);
  CHECK(backoff.after(false) == 60);
  CHECK(backoff.after(true) == 120);
  CHECK(backoff.after(true) == 240);
  CHECK(backoff.after(true) == 480);
  CHECK(backoff.after(true) == 900);
  CHECK(backoff.after(true) == 900);
  CHECK(backoff.after(false) == 60);
  CHECK(backoff.after(true) == 120);
}

TEST_CASE("an interval longer than the longest wait stays as it is") {
  Backoff backoff(3600);
  CHECK(backoff.after(true) == 3600);
  CHECK(backoff.after(true) == 3600);
}

TEST_CASE("a problem is said when it comes and when it goes, not in each round") {
  ProblemLog log;
  CHECK(log.lines_for({}).empty());
  CHECK(log.lines_for({"a is damaged"}) == Lines{"a is damaged"});
  CHECK(log.lines_for({"a is damaged"}).empty());
  CHECK(log.lines_for({"a is damaged", "b is empty", "b is empty"}) == Lines{"b is empty"});
  CHECK(log.lines_for({"b is empty"}) == Lines{"no longer: a is damaged"});
  CHECK(log.lines_for({}) == Lines{"no longer: b is empty"});
}

TEST_CASE("a flood of problems is cut") {
  ProblemLog log;
  Lines many;
  for (int i = 0; i < 1000; ++i) many.push_back(std::to_string(i));
  CHECK(log.lines_for(many).size() == 50);
  CHECK(log.lines_for(many).empty());
}
