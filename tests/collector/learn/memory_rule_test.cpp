// Source: collector/learn/memory_rule.cpp.
#include "collector/learn/memory_rule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace sphase;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

Observation run(std::int64_t peak_mib, std::int64_t nodes_used = 1, std::uint32_t flags = 0,
                std::int64_t limit_mib = 0) {
  Observation observation;
  observation.nodes = observation.nodes_used = nodes_used;
  observation.duration_s = 10;
  observation.flags = flags;
  if (peak_mib > 0) observation.memory_peak_bytes = peak_mib * kMiB;
  if (limit_mib > 0) observation.memory_limit_bytes = limit_mib * kMiB;
  return observation;
}

std::int64_t ask_mib(const std::vector<Observation>& runs, std::int64_t nodes = 1,
                     std::int64_t most_mib = 0) {
  return memory_to_ask(runs, nodes, SiteConfig(), most_mib * kMiB).bytes / kMiB;
}

}  // namespace

TEST_CASE("without a peak nothing is known, and nothing is asked") {
  CHECK(ask_mib({}) == 0);
  CHECK(ask_mib({run(0), run(0)}) == 0);
  CHECK(memory_to_ask({run(0)}, 1, SiteConfig(), 0).known == 0);
}

TEST_CASE("the highest peak and the larger of both margins, rounded up to 16 MiB") {
  CHECK(ask_mib({run(1000), run(400), run(900)}) == 1200);  // 20 %
  CHECK(ask_mib({run(1001)}) == 1216);                      // 1201.2
  CHECK(ask_mib({run(100)}) == 176);                        // 164: 64 MiB are more than 20 %
  SiteConfig wide;
  wide.memory_margin_percent = 100;
  CHECK(memory_to_ask({run(1000)}, 1, wide, 0).bytes == 2000 * kMiB);
}

TEST_CASE("a peak seen on more nodes is scaled up, one seen on fewer stays") {
  const std::vector<Observation> runs = {run(1000, 4), run(1500, 2)};
  CHECK(ask_mib(runs, 4) == 1808);  // never below the highest at any size: 1500
  CHECK(ask_mib(runs, 2) == 2400);  // 1000 on 4 are at most 2000 on 2
  CHECK(ask_mib(runs, 1) == 4800);
  CHECK(memory_to_ask(runs, 1, SiteConfig(), 0).peak_bytes == 1500 * kMiB);
}

TEST_CASE("one kill for memory raises at once") {
  CHECK(ask_mib({run(990, 1, kObservedOom, 1000)}) == 1504);   // 1.5 x 1000
  CHECK(ask_mib({run(95, 1, kObservedOom, 100)}) == 208);      // 100 + 100
  CHECK(ask_mib({run(0, 1, kObservedOom, 1000)}) == 1504);     // its peak is not known
  CHECK(ask_mib({run(1000, 1, kObservedOom)}) == 1504);        // nor what it was given
  CHECK(ask_mib({run(1000, 2, kObservedOom, 1000)}) == 3008);  // two nodes' data on one
  CHECK(memory_to_ask({run(990, 1, kObservedOom, 1000)}, 1, SiteConfig(), 0).raised);
}

TEST_CASE("a kill of which nothing is known raises nothing") {
  const auto advice = memory_to_ask({run(0, 1, kObservedOom)}, 1, SiteConfig(), 0);
  CHECK(advice.bytes == 0);
  CHECK_FALSE(advice.raised);
}

TEST_CASE("three good runs after a kill, and not fewer, bring it back to the peaks") {
  std::vector<Observation> runs = {run(500), run(500), run(500), run(990, 1, kObservedOom, 1000)};
  const auto good = run(600);
  runs.insert(runs.end(), {good, good});
  CHECK(ask_mib(runs) == 1504);
  runs.push_back(run(0));                         // its peak is not known
  runs.push_back(run(600, 1, kObservedPartial));  // nor here, of every node
  runs.push_back(run(600, 1, kObservedFailed));
  runs.push_back(run(600, 1, kObservedTimeout));
  CHECK(ask_mib(runs) == 1504);
  runs.push_back(good);
  CHECK(ask_mib(runs) == 1200);  // 990 was held before the kill: with margin 1188
  CHECK_FALSE(memory_to_ask(runs, 1, SiteConfig(), 0).raised);
}

TEST_CASE("each kill counts until it is three good runs old") {
  const auto good = run(600);
  const std::vector<Observation> runs = {run(0, 1, kObservedOom, 4000), good, good,
                                         run(0, 1, kObservedOom, 1000), good};
  CHECK(ask_mib(runs) == 1504);  // the older one has three good runs after it
  const std::vector<Observation> sooner(runs.begin(), runs.end() - 1);
  CHECK(ask_mib(sooner) == 6000);
}

TEST_CASE("of several kills the one that calls for most counts") {
  const auto small = run(0, 1, kObservedOom, 1000), large = run(0, 1, kObservedOom, 4000);
  CHECK(ask_mib({small, large}) == 6000);
  CHECK(ask_mib({large, small}) == 6000);
}

TEST_CASE("the partition's largest node is the most that is asked for") {
  CHECK(ask_mib({run(1000)}, 1, 1100) == 1100);
  CHECK(ask_mib({run(1000)}, 1, 900) == 900);
  CHECK(ask_mib({run(1000)}, 1, 4000) == 1200);
  const auto advice = memory_to_ask({run(1000)}, 1, SiteConfig(), 900 * kMiB);
  CHECK(advice.need_bytes == 1200 * kMiB);
}

TEST_CASE("nonsense does no harm") {
  const auto advice = memory_to_ask({run(1LL << 42), run(-5), run(7, -3)}, -1, SiteConfig(), -8);
  CHECK(advice.bytes > 0);
  Observation huge = run(1, 1'000'000);
  huge.memory_peak_bytes = INT64_MAX;
  CHECK(memory_to_ask({huge}, 0, SiteConfig(), 0).bytes > 0);
}

TEST_CASE("more is never less: random runs with a higher peak ask for at least as much") {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Observation> runs;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      const std::uint32_t flags = random() % 6 == 0 ? std::uint32_t{kObservedOom} : 0;
      runs.push_back(run(static_cast<std::int64_t>(random() % 5000),
                         static_cast<std::int64_t>(1 + random() % 8), flags,
                         static_cast<std::int64_t>(random() % 5000)));
    }
    const auto nodes = static_cast<std::int64_t>(1 + random() % 8);
    const auto before = memory_to_ask(runs, nodes, SiteConfig(), 0);
    std::int64_t peak = 0;
    for (const auto& seen : runs) peak = std::max(peak, seen.memory_peak_bytes.value_or(0));
    CHECK(before.peak_bytes == peak);
    if (peak > 0) CHECK(before.bytes >= peak + std::max(peak / 5, 64 * kMiB));
    CHECK(before.bytes % (16 * kMiB) == 0);
    CHECK(memory_to_ask(runs, nodes + 1, SiteConfig(), 0).bytes <= before.bytes);
    auto& one = runs[random() % runs.size()];
    if (one.memory_peak_bytes) *one.memory_peak_bytes += 100 * kMiB;
    CHECK(memory_to_ask(runs, nodes, SiteConfig(), 0).bytes >= before.bytes);
  }
}
