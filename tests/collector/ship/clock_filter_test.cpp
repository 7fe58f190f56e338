#include "collector/ship/clock_filter.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <random>

using namespace sphase;

namespace {

constexpr std::int64_t kUs = 1000, kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr std::int64_t kEpoch = 1'700'000'000 * kSecond;

/// A node and a collector whose clocks differ. Time is that of CLOCK_MONOTONIC on the node.
struct Clocks {
  std::int64_t now_ns = 5000 * kSecond;
  std::int64_t offset_ns = 0;  // the node's wall clock minus the collector's
  double drift = 0;            // of the node's clock against the collector's; 1e-6: 1 us a second
  double drifted_ns = 0;

  std::int64_t collector() const { return kEpoch + now_ns; }
  std::int64_t node() const { return collector() + truth(); }
  std::int64_t truth() const { return offset_ns + std::llround(drifted_ns); }
  void pass(std::int64_t ns) {
    now_ns += ns;
    drifted_ns += drift * static_cast<double>(ns);
  }
  /// One exchange: so long there, so long with the collector, so long back.
  void exchange(ClockFilter& filter, std::int64_t there_ns, std::int64_t back_ns,
                std::int64_t with_ns = 0) {
    ClockTimes times;
    times.sent_ns = node();
    pass(there_ns);
    times.came_ns = collector();
    pass(with_ns);
    times.answered_ns = collector();
    pass(back_ns);
    filter.add(times, node(), now_ns);
  }
};

ClockOffset best(const ClockFilter& filter, const Clocks& clocks) {
  const auto found = filter.best(clocks.now_ns);
  REQUIRE(found);
  return *found;
}

std::int64_t miss_ns(const ClockFilter& filter, const Clocks& clocks) {
  return std::llabs(best(filter, clocks).offset_ns - clocks.truth());
}

}  // namespace

TEST_CASE("before the first exchange nothing is known of the clock") {
  CHECK_FALSE(ClockFilter().best(0));
}

TEST_CASE("with equal delays the offset is exact, ahead or behind") {
  for (const std::int64_t offset_ns : {std::int64_t{0}, 3 * kSecond, -3 * kSecond, 77 * kUs}) {
    ClockFilter filter;
    Clocks clocks{.offset_ns = offset_ns};
    clocks.exchange(filter, 200 * kUs, 200 * kUs);
    CHECK(best(filter, clocks).offset_ns == offset_ns);
  }
}

TEST_CASE("with unequal delays the offset is off by half of their difference, within the band") {
  for (const auto& [there_ns, back_ns] :
       {std::pair{900 * kUs, 100 * kUs}, {100 * kUs, 900 * kUs}, {std::int64_t{0}, kMs}}) {
    ClockFilter filter;
    Clocks clocks{.offset_ns = 5 * kSecond};
    clocks.exchange(filter, there_ns, back_ns);
    CHECK(miss_ns(filter, clocks) == std::llabs(there_ns - back_ns) / 2);
    CHECK(best(filter, clocks).band_ns >= 500 * kUs);
    CHECK(best(filter, clocks).band_ns < 510 * kUs);
  }
}

TEST_CASE("the time that the collector takes to answer makes the band hardly wider") {
  ClockFilter filter;
  Clocks clocks{.offset_ns = kSecond};
  clocks.exchange(filter, 100 * kUs, 100 * kUs, 30 * kMs);
  CHECK(best(filter, clocks).band_ns < 105 * kUs);
  CHECK(best(filter, clocks).offset_ns == kSecond);
}

TEST_CASE("of several exchanges the one with the least delay counts") {
  ClockFilter filter;
  Clocks clocks{.offset_ns = kSecond};
  for (const std::int64_t back_ns : {20 * kMs, 100 * kUs, 30 * kMs, 7 * kMs}) {
    clocks.exchange(filter, 100 * kUs, back_ns);
    clocks.pass(kSecond);
  }
  CHECK(best(filter, clocks).offset_ns == kSecond);
}

TEST_CASE("the band grows with age, by what a quartz may drift") {
  ClockFilter filter;
  Clocks clocks;
  clocks.exchange(filter, 100 * kUs, 100 * kUs);
  const std::int64_t fresh_ns = best(filter, clocks).band_ns;
  clocks.pass(100 * kSecond);
  CHECK(best(filter, clocks).band_ns == fresh_ns + 100 * kSecond / 1'000'000 * 50);
}

TEST_CASE("an old exchange gives way to a worse one that is new") {
  ClockFilter filter;
  Clocks clocks{.drift = 40e-6};
  clocks.exchange(filter, 50 * kUs, 50 * kUs);
  clocks.pass(600 * kSecond);
  clocks.exchange(filter, kMs, kMs);
  CHECK(best(filter, clocks).band_ns < 2 * kMs);
  CHECK(miss_ns(filter, clocks) < kMs);
}

TEST_CASE("a clock that is stepped is known anew with the next exchange") {
  for (const std::int64_t step_ns : {10 * kMs, -10 * kMs, 3600 * kSecond, -3600 * kSecond}) {
    ClockFilter filter;
    Clocks clocks;
    for (int i = 0; i < 8; ++i) clocks.exchange(filter, 100 * kUs, 100 * kUs);
    clocks.offset_ns += step_ns;
    clocks.exchange(filter, 200 * kUs, 300 * kUs);
    CHECK(miss_ns(filter, clocks) <= best(filter, clocks).band_ns);
    clocks.exchange(filter, 400 * kUs, 300 * kUs);
    CHECK(miss_ns(filter, clocks) <= best(filter, clocks).band_ns);
  }
}

TEST_CASE("an exchange in which time ran backwards says nothing") {
  ClockFilter filter;
  filter.add({kEpoch, kEpoch, kEpoch}, kEpoch - 1, 0);             // came before it was sent
  filter.add({kEpoch, kEpoch + 2, kEpoch + 1}, kEpoch + 10, 0);    // answered before it came
  filter.add({kEpoch, kEpoch, kEpoch + kSecond}, kEpoch + 10, 0);  // longer there than away
  CHECK_FALSE(filter.best(0));
}

TEST_CASE("times that no clock shows say nothing") {
  for (const std::int64_t far : {INT64_MAX, INT64_MIN, INT64_MAX - 1, std::int64_t{-1}}) {
    ClockFilter filter;
    filter.add({kEpoch, far, far}, kEpoch + kMs, 0);
    filter.add({far, kEpoch, kEpoch}, kEpoch + kMs, 0);
    filter.add({kEpoch, kEpoch, kEpoch}, far, 0);
    filter.add({kEpoch, 0, far}, kEpoch + kMs, 0);
    CHECK_FALSE(filter.best(0));
  }
}

TEST_CASE("after eight exchanges the ninth takes the place of the first") {
  ClockFilter filter;
  Clocks clocks;
  clocks.exchange(filter, kUs, kUs);
  const std::int64_t narrow_ns = best(filter, clocks).band_ns;
  for (int i = 0; i < 7; ++i) clocks.exchange(filter, 500 * kUs, 500 * kUs);
  CHECK(best(filter, clocks).band_ns < narrow_ns + kUs);
  clocks.exchange(filter, 500 * kUs, 500 * kUs);
  CHECK(best(filter, clocks).band_ns > 400 * kUs);
}

TEST_CASE("whatever the delays, the truth lies within the band") {
  for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
                                   static_cast<std::uint64_t>(std::time(nullptr))}) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    // From 1 us to 30 s, short ones as likely as long ones.
    const auto delay_ns = [&] {
      return std::llround(std::exp(std::uniform_real_distribution<double>(7, 24)(random)));
    };
    for (int round = 0; round < 100; ++round) {
      Clocks clocks;
      clocks.offset_ns = static_cast<std::int64_t>(random() % 100) * kSecond - 50 * kSecond;
      ClockFilter filter;
      for (int i = 0; i < 40; ++i) {
        clocks.drift = std::uniform_real_distribution<double>(-49e-6, 49e-6)(random);
        clocks.exchange(filter, delay_ns(), delay_ns(), delay_ns());
        // Where the clocks drift more than the delay, the exchange seems to run backwards.
        if (!filter.best(clocks.now_ns)) continue;
        REQUIRE(miss_ns(filter, clocks) <= best(filter, clocks).band_ns);
        clocks.pass(static_cast<std::int64_t>(random() % 100) * kSecond);
        REQUIRE(miss_ns(filter, clocks) <= best(filter, clocks).band_ns);
      }
    }
  }
}
