// When the edge thread sleeps (pacing.h), how late it was (edge_lag.h), whose stamp counts
// (clients.h).
#include "spank/recorder/phases/pacing.h"

#include <doctest/doctest.h>

#include <random>

#include "spank/recorder/phases/clients.h"
#include "spank/recorder/phases/edge_lag.h"

using namespace sphase;

namespace {
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;
}  // namespace

TEST_CASE("a quiet program wakes us at once, every time") {
  Pacing pacing;
  std::int64_t now = kSecond;
  for (int i = 0; i < 10'000; ++i, now += 10 * kMs) CHECK(pacing.pause_ns(now, 150'000, 1) == 0);
}

TEST_CASE("a short burst is still read at once") {
  Pacing pacing;
  std::int64_t now = kSecond;
  for (int i = 0; i < 90; ++i, now += 5'000) CHECK(pacing.pause_ns(now, 5'000, 1) == 0);
}

TEST_CASE("a program that marks a thousand times a second costs a fiftieth of one CPU at most") {
  for (const std::int64_t took : {std::int64_t{20'000}, std::int64_t{150'000}}) {
    CAPTURE(took);
    Pacing pacing;
    std::int64_t now = kSecond, busy = 0, next_marker = now;
    for (int i = 0; i < 5'000; ++i) {
      std::uint32_t waiting = 0;
      for (; next_marker <= now; next_marker += kMs) ++waiting;
      if (waiting == 0) {  // sleeps on the bell
        now = next_marker;
        continue;
      }
      const std::int64_t pause = pacing.pause_ns(now, took, waiting);
      if (now > 10 * kSecond) busy += took;
      now += took + pause;
    }
    CHECK(static_cast<double>(busy) / static_cast<double>(now - 10 * kSecond) <= 0.0205);
  }
}

TEST_CASE("one very slow look at a few markers does not make the next ones inexact") {
  Pacing pacing;
  CHECK(pacing.pause_ns(kSecond, 300 * kMs, 2) == 0);
  CHECK(pacing.pause_ns(kSecond + 350 * kMs, 20'000, 1) == 0);
}

TEST_CASE("a look that finds nothing never makes us pause") {
  Pacing pacing;
  for (int i = 0; i < 10'000; ++i) CHECK(pacing.pause_ns(kSecond + i, 1'000, 0) == 0);
}

TEST_CASE("a hot program takes at most a tenth of one CPU") {
  for (const std::int64_t took : {std::int64_t{2'000}, std::int64_t{200'000}, 2 * kMs}) {
    CAPTURE(took);
    Pacing pacing;
    std::int64_t now = kSecond;
    std::int64_t busy = 0;
    for (int i = 0; i < 1000; ++i) {  // until its burst is used up
      now += took + pacing.pause_ns(now, took, 100);
    }
    const std::int64_t begin = now;
    for (int i = 0; i < 10'000; ++i) {
      busy += took;
      now += took + pacing.pause_ns(now, took, 100);
    }
    CHECK(static_cast<double>(busy) / static_cast<double>(now - begin) <= 0.101);
  }
}

TEST_CASE("a pause is never so long that a marker waits for ever") {
  Pacing pacing;
  std::int64_t now = kSecond;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t pause = pacing.pause_ns(now, kSecond, 4096);
    CHECK(pause >= 0);
    CHECK(pause <= Pacing::kLongestNs);
    now += 1;
  }
}

TEST_CASE("a hot program that calms down is read at once again") {
  Pacing pacing;
  std::int64_t now = kSecond;
  for (int i = 0; i < 5000; ++i) now += 2'000 + pacing.pause_ns(now, 2'000, 100);
  CHECK(pacing.hot());
  now += kSecond;
  CHECK(pacing.pause_ns(now, 2'000, 1) == 0);
  CHECK_FALSE(pacing.hot());
}

TEST_CASE("without an edge there is no quantile") {
  CHECK(EdgeLag().quantile_ns(0.5) == std::nullopt);
}

TEST_CASE("a quantile is right to a quarter") {
  EdgeLag lag;
  for (std::int64_t us = 1; us <= 1000; ++us) lag.add(us * 1000);
  for (const double share : {0.1, 0.5, 0.9, 0.99, 1.0}) {
    const double exact = share * 1'000'000;
    const auto found = lag.quantile_ns(share);
    REQUIRE(found);
    CAPTURE(share);
    CHECK(static_cast<double>(*found) >= exact * 0.99);
    CHECK(static_cast<double>(*found) <= exact * 1.3);
  }
}

TEST_CASE("the largest and the smallest delays have a place") {
  EdgeLag lag;
  for (const std::int64_t ns :
       {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, INT64_MAX}) {
    lag.add(ns);
  }
  CHECK(*lag.quantile_ns(0.2) <= 1250);
  CHECK(*lag.quantile_ns(1.0) > kSecond);
  CHECK(*lag.quantile_ns(0.0) > 0);
}

TEST_CASE("one outlier does not move the median") {
  EdgeLag lag;
  for (int i = 0; i < 99; ++i) lag.add(5'000);
  lag.add(kSecond);
  CHECK(*lag.quantile_ns(0.5) < 10'000);
  CHECK(*lag.quantile_ns(0.99) < 10'000);
  CHECK(*lag.quantile_ns(1.0) >= kSecond);
}

TEST_CASE("each process has a number of its own, from 1, up to a limit") {
  Clients clients;
  CHECK(clients.add(100, 0) == 1);
  CHECK(clients.add(100, 1) == 2);
  REQUIRE(clients.find(2) != nullptr);
  CHECK(clients.find(2)->task == 1);
  CHECK(clients.find(0) == nullptr);
  CHECK(clients.find(3) == nullptr);
  clients.remove(1);
  CHECK(clients.find(1) == nullptr);
  CHECK(clients.add(100, 0) == 3);  // a number is never used again
}

TEST_CASE("too many processes are refused") {
  Clients clients;
  for (std::size_t i = 0; i < Clients::kMost; ++i) REQUIRE(clients.add(-1, 0) != 0);
  CHECK(clients.add(-1, 0) == 0);
}

TEST_CASE("a stamp is carried on by the time since, with that time as its uncertainty") {
  Client client;
  Edge edge;
  stamp_edge(client, 1000, edge);
  CHECK_FALSE(edge.process_cpu_ns);

  sphase_record record{};
  record.time_ns = 1'000'000;
  record.cpu_time_ns = 500;
  remember_stamp(client, record);
  stamp_edge(client, 1'000'000, edge);
  CHECK(edge.process_cpu_ns == 500);
  CHECK(edge.process_uncertainty_ns == 0);
  stamp_edge(client, 1'400'000, edge);
  CHECK(edge.process_cpu_ns == 400'500);
  CHECK(edge.process_uncertainty_ns == 400'000);
}

TEST_CASE("a stamp that is old, or from later than the marker, says nothing") {
  Client client;
  sphase_record record{};
  record.time_ns = 10'000'000;
  record.cpu_time_ns = 500;
  remember_stamp(client, record);
  for (const std::int64_t time_ns : {std::int64_t{9'999'999}, 10'000'001 + Clients::kStampMostNs}) {
    Edge edge;
    stamp_edge(client, time_ns, edge);
    CHECK_FALSE(edge.process_cpu_ns);
  }
}

TEST_CASE("a record without a stamp leaves the last one standing") {
  Client client;
  sphase_record record{};
  record.time_ns = 10;
  record.cpu_time_ns = 500;
  remember_stamp(client, record);
  record.time_ns = 20;
  record.cpu_time_ns = 0;
  remember_stamp(client, record);
  CHECK(client.stamp_time_ns == 10);
}
