#include "collector/http/sessions.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("a cookie is found by its whole name among others") {
  CHECK(cookie_value("sphase=abc", "sphase") == "abc");
  CHECK(cookie_value("a=1; sphase=abc; b=2", "sphase") == "abc");
  CHECK(cookie_value("a=1;sphase=abc ;b=2", "sphase") == "abc");
  CHECK(cookie_value("sphase=a=b", "sphase") == "a=b");
  CHECK(cookie_value("sphase=first; sphase=second", "sphase") == "first");
  CHECK(cookie_value("sphase=", "sphase") == "");
}

TEST_CASE("a field without that cookie has none") {
  for (const char* field :
       {"", ";", ";;;", "sphase", "xsphase=1", "sphasex=1", "=sphase", "a=sphase=1", "Sphase=1"}) {
    CAPTURE(field);
    CHECK(!cookie_value(field, "sphase"));
  }
}

TEST_CASE("a session is its user's until eight hours have passed") {
  Sessions sessions;
  const auto id = sessions.open(1000, 0);
  REQUIRE(id);
  CHECK(id->size() == 64);
  CHECK(sessions.uid_of(*id, 0) == 1000U);
  CHECK(sessions.uid_of(*id, (kSessionS - 1) * kSecond) == 1000U);
  CHECK(!sessions.uid_of(*id, kSessionS * kSecond));
  CHECK(sessions.count(kSessionS * kSecond) == 0);
}

TEST_CASE("ids differ, and nothing else is one") {
  Sessions sessions;
  const auto one = sessions.open(1, 0), other = sessions.open(2, 0);
  CHECK(*one != *other);
  CHECK(!sessions.uid_of("", 0));
  CHECK(!sessions.uid_of(one->substr(1), 0));
  CHECK(sessions.uid_of(*other, 0) == 2U);
}

TEST_CASE("where there are too many sessions the oldest one ends") {
  Sessions sessions(3);
  const auto first = sessions.open(1, 0), second = sessions.open(2, 1);
  CHECK(sessions.open(3, 2));
  CHECK(sessions.open(4, 3));
  CHECK(sessions.count(4) == 3);
  CHECK(!sessions.uid_of(*first, 4));
  CHECK(sessions.uid_of(*second, 4) == 2U);
}
