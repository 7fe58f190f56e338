// Sources: collector/learn/advise.cpp, pack.cpp, reason.cpp, size_choice.cpp.
#include "collector/learn/advise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collector/learn/size_choice.h"

using namespace sphase;
using doctest::Approx;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

struct Spec {
  std::int64_t nodes = 4, used = 1;
  double seconds = 100;
  std::int64_t peak_mib = 1000, limit_mib = 4000;
  std::uint32_t flags = 0;
};

Observation observation(const std::string& path, const Spec& spec) {
  Observation seen;
  seen.path = path;
  seen.nodes = spec.nodes;
  seen.nodes_used = spec.used;
  seen.duration_s = spec.seconds;
  if (spec.peak_mib > 0) seen.memory_peak_bytes = spec.peak_mib * kMiB;
  if (spec.limit_mib > 0) seen.memory_limit_bytes = spec.limit_mib * kMiB;
  seen.cpus_busy = 1.5;
  seen.flags = spec.flags;
  return seen;
}

ObservedJob job(const Spec& spec) {
  ObservedJob run;
  run.profile = "1001/solver";
  run.partition = "batch";
  run.nodes_asked = spec.nodes;
  run.phases = {observation("", spec)};
  return run;
}

ObservedJob with(ObservedJob run, const std::string& path, const Spec& spec) {
  run.phases.push_back(observation(path, spec));
  return run;
}

std::vector<ObservedJob> repeat(const ObservedJob& run, int count) {
  return std::vector<ObservedJob>(static_cast<std::size_t>(count), run);
}

ProfileAdvice ask(const std::vector<ObservedJob>& runs, const PartitionLimits& limits = {}) {
  return advise(runs, SiteConfig(), limits);
}

SiteConfig config_of(const char* policy) {
  SiteConfig config;
  REQUIRE(parse_policy(policy, config.policy));
  return config;
}

/// Runs of a job that takes a + b/n + c n on its n nodes, all of them used.
std::vector<ObservedJob> scaling(const std::vector<std::int64_t>& sizes, double a, double b,
                                 double c, int each = 2) {
  std::vector<ObservedJob> runs;
  for (int i = 0; i < each; ++i) {
    for (const auto n : sizes) {
      const double size = static_cast<double>(n);
      runs.push_back(job({.nodes = n, .used = n, .seconds = a + b / size + c * size}));
    }
  }
  return runs;
}

}  // namespace

TEST_CASE("without runs there is no advice, and a sentence says so") {
  const auto advice = ask({});
  CHECK_FALSE(advice.enough);
  CHECK(advice.reason == "no run is known yet");
  CHECK(advice.confidence == 0);
  CHECK(advice.job.best.nodes == 0);
}

TEST_CASE("advice begins with as many good runs as the site wants") {
  const auto two = ask(repeat(job({}), 2));
  CHECK_FALSE(two.enough);
  CHECK(two.reason == "2 of the 3 runs that are needed before advice is given");
  const auto packed = pack(two, repeat(job({}), 2), SiteConfig(), 100);
  CHECK(packed.head.nodes == 0);
  CHECK(packed.head.memory_bytes == 0);
  CHECK(packed.head.time_limit_s == 0);
  const auto three = ask(repeat(job({}), 3));
  CHECK(three.enough);
  CHECK(three.runs == 3);
  CHECK(three.reason == "3 runs; 1 of 4 nodes was used");
  CHECK(three.job.best.nodes == 1);
  CHECK(three.job.memory_bytes == 1200 * kMiB);
  CHECK(three.job.memory_peak_bytes == 1000 * kMiB);
  CHECK(three.flags == 0);
}

TEST_CASE("failed and cancelled runs do not count") {
  auto runs = repeat(job({}), 2);
  runs.push_back(job({.seconds = 5, .flags = kObservedFailed}));
  runs.push_back(job({.seconds = 5, .flags = kObservedFailed}));
  const auto advice = ask(runs);
  CHECK_FALSE(advice.enough);
  CHECK(advice.runs == 2);
  CHECK(advice.reason ==
        "2 of the 3 runs that are needed before advice is given; 2 failed or ended early: of no "
        "use for times");
}

TEST_CASE("a failed run's peak still counts as held") {
  auto runs = repeat(job({}), 3);
  runs.push_back(job({.peak_mib = 3000, .flags = kObservedFailed}));
  CHECK(ask(runs).job.memory_bytes == 3600 * kMiB);
}

TEST_CASE("one kill for memory is enough for memory, and for nothing else") {
  const std::vector<ObservedJob> runs = {
      with(job({.peak_mib = 990, .limit_mib = 1000, .flags = kObservedOom}), "solve", {})};
  const auto advice = ask(runs);
  CHECK(advice.enough);
  CHECK(advice.flags == kAdviceOom);
  CHECK(advice.job.memory_bytes == 1504 * kMiB);
  CHECK(advice.job.best.nodes == 0);
  CHECK(advice.time_limit_s == 0);
  CHECK(advice.phases.empty());
  CHECK(advice.reason ==
        "a run was killed for memory, so memory is raised at once; 0 of the 3 runs that are needed "
        "for more");
  const auto packed = pack(advice, runs, SiteConfig(), 100);
  CHECK(packed.head.memory_bytes == 1504 * kMiB);
  CHECK(packed.head.nodes == 0);
  CHECK(packed.head.cpus_per_node == 0);
  CHECK(packed.head.time_limit_s == 0);
  CHECK(packed.head.time_s == 0);
}

TEST_CASE("a kill among too few good runs is not one of them") {
  auto runs = repeat(job({}), 2);
  runs.push_back(job({.peak_mib = 990, .limit_mib = 1000, .flags = kObservedOom}));
  const auto advice = ask(runs);
  CHECK(advice.enough);
  CHECK(advice.job.best.nodes == 0);
  CHECK(advice.time_limit_s == 0);
  runs.push_back(job({}));
  CHECK(ask(runs).job.best.nodes == 1);
  CHECK(ask(runs).job.memory_bytes == 1504 * kMiB);  // still raised
  CHECK((ask(runs).flags & kAdviceOom) != 0);
}

TEST_CASE("without a size, memory is that of the smallest size seen") {
  const auto advice =
      ask({job({.used = 4, .limit_mib = 1000, .flags = kObservedOom}),
           job({.used = 2, .peak_mib = 300, .limit_mib = 400, .flags = kObservedOom})});
  CHECK(advice.job.memory_bytes == 3008 * kMiB);  // 1000 x 1.5 x 4/2
}

TEST_CASE("memory needs as many full peaks as the site wants runs") {
  auto runs = repeat(job({}), 2);
  runs.push_back(job({.peak_mib = 0}));
  CHECK(ask(runs).enough);
  CHECK(ask(runs).job.memory_bytes == 0);
  CHECK(ask(runs).job.memory_peak_bytes == 1000 * kMiB);
  runs.push_back(job({}));
  CHECK(ask(runs).job.memory_bytes == 1200 * kMiB);
}

TEST_CASE("memory that only some nodes told of is not advised") {
  CHECK(ask(repeat(job({.flags = kObservedPartial}), 5)).job.memory_bytes == 0);
  CHECK(ask(repeat(job({.peak_mib = 0}), 5)).job.memory_bytes == 0);
}

TEST_CASE("the time limit is the longest run with margin, at least five minutes, whole minutes") {
  auto runs = repeat(job({.seconds = 1000}), 3);
  runs[1].phases[0].duration_s = 2000;
  CHECK(ask(runs).time_limit_s == 3000);
  CHECK(ask(repeat(job({.seconds = 90}), 3)).time_limit_s == 420);  // 390 s
  PartitionLimits limits;
  limits.time_most_s = 2400;
  CHECK(ask(runs, limits).time_limit_s == 2400);
}

TEST_CASE("a run that reached its limit asks for half as much again") {
  auto runs = repeat(job({.seconds = 1000}), 3);
  runs.push_back(job({.seconds = 3600, .flags = kObservedTimeout}));
  const auto advice = ask(runs);
  CHECK(advice.time_limit_s == 5400);
  CHECK(advice.flags == kAdviceTimeout);
  CHECK(advice.job.best.time.expected == 1000);  // its duration is no measurement
  CHECK(advice.reason == "3 runs; 1 of 4 nodes was used; 1 reached the time limit");
}

TEST_CASE("efficiency: the largest size that reaches it") {
  // T(n) = 10 + 90/n: efficiency 100/(10 n + 90).
  const auto runs = scaling({1, 2, 4, 8, 16}, 10, 90, 0);
  CHECK(advise(runs, config_of("efficiency>=0.7"), {}).job.best.nodes == 5);  // 100/140 = 0.71
  CHECK(advise(runs, config_of("efficiency>=0.5"), {}).job.best.nodes == 11);
  CHECK(advise(runs, config_of("efficiency>=1"), {}).job.best.nodes == 1);
  CHECK(advise(runs, config_of("efficiency>=0.05"), {}).job.best.nodes == 16);  // not above
  const auto advice = advise(runs, config_of("efficiency>=0.5"), {});
  CHECK(advice.flags == kAdviceModel);
  CHECK(advice.job.sizes.size() == 16);
  CHECK(advice.job.best.efficiency == Approx(0.5));
  CHECK(advice.reason == "10 runs on 1 to 16 nodes");
}

TEST_CASE(
    "efficiency below the smallest size seen is by the model; none reaches it: the smallest") {
  const auto runs = scaling({4, 8, 16}, 50, 50, 0);
  CHECK(advise(runs, config_of("efficiency>=0.7"), {}).job.best.nodes == 4);
}

TEST_CASE("least time: fewest nodes within two percent of it") {
  // T(n) = 100/n + n: least at 10, within 2 % from 9 nodes.
  const auto runs = scaling({1, 4, 10, 16}, 0, 100, 1);
  CHECK(advise(runs, config_of("min-time"), {}).job.best.nodes == 9);
}

TEST_CASE("least cost: fewest nodes of equal cost") {
  CHECK(advise(scaling({2, 4, 8}, 0, 100, 0), config_of("min-cost"), {}).job.best.nodes == 2);
  CHECK(advise(scaling({2, 4, 8}, 1, 100, 0), config_of("min-cost"), {}).job.best.nodes == 2);
}

TEST_CASE("the job has no fewer nodes than a phase of which fewer were never seen") {
  std::vector<ObservedJob> runs;
  for (const std::int64_t n : {2, 4, 8, 8}) {
    const double size = static_cast<double>(n);
    auto run = job({.nodes = n, .used = n, .seconds = 50 + 50 / size});
    if (n == 8) run = with(run, "wide", {.nodes = 8, .used = 8, .seconds = 3});
    runs.push_back(run);
  }
  const auto advice = ask(runs);
  CHECK(advice.job.best.nodes == 8);
  REQUIRE(advice.phases.size() == 1);
  CHECK(advice.phases[0].best.nodes == 8);
  CHECK(advice.phases[0].best.efficiency == 0);  // not known with one size
}

TEST_CASE("the partition's limits hold, or there is no size") {
  const auto runs = scaling({1, 2, 4, 8}, 0, 100, 0);
  PartitionLimits limits;
  limits.nodes_most = 3;
  CHECK(ask(runs, limits).job.best.nodes == 3);
  limits = {};
  limits.nodes_least = 4;
  CHECK(advise(runs, config_of("min-cost"), limits).job.best.nodes == 4);
  limits.nodes_least = 9;
  const auto none = ask(runs, limits);
  CHECK(none.job.best.nodes == 0);
  CHECK(none.job.memory_bytes > 0);
  // Idle nodes that the partition insists on were there before.
  limits.nodes_least = 2;
  CHECK(ask(repeat(job({.nodes = 4, .used = 1}), 3), limits).job.best.nodes == 2);
}

TEST_CASE("a size whose memory no node has is passed over") {
  auto runs = scaling({2, 8}, 50, 50, 0);
  for (auto& run : runs) run.phases[0].memory_peak_bytes = 1000 * kMiB;
  PartitionLimits limits;
  CHECK(ask(runs, limits).job.best.nodes == 2);
  limits.memory_most_bytes = 2500 * kMiB;  // 8 nodes' data on 4: 4 x 1000 x 1.2 / 2 = 2400
  CHECK(ask(runs, limits).job.best.nodes == 4);
  CHECK(ask(runs, limits).job.memory_bytes == 2400 * kMiB);
  limits.memory_most_bytes = 100 * kMiB;  // nowhere: what there is
  CHECK(ask(runs, limits).job.memory_bytes == 100 * kMiB);
}

TEST_CASE("phases come in the order in which they begin, also those only older runs had") {
  const Spec spec;
  auto old_run = with(with(with(job({}), "read", spec), "warm", spec), "solve", spec);
  auto new_run = with(with(with(job({}), "read", spec), "solve", spec), "write", spec);
  const auto advice = ask({old_run, new_run, new_run});
  std::vector<std::string> paths;
  for (const auto& phase : advice.phases) paths.push_back(phase.path);
  CHECK(paths == std::vector<std::string>{"read", "warm", "solve", "write"});
  CHECK(advice.phases[1].runs == 1);
}

TEST_CASE(
    "a phase that had ended before its job was killed counts, one that was cut short does not") {
  auto killed = with(with(job({.flags = kObservedOom}), "read", {.seconds = 20}), "solve",
                     {.seconds = 1, .flags = kObservedOom});
  auto good = with(with(job({}), "read", {.seconds = 10}), "solve", {.seconds = 50});
  const auto advice = ask({good, good, good, killed});
  CHECK(advice.phases[0].runs == 4);
  CHECK(advice.phases[1].runs == 3);
  CHECK(advice.phases[1].best.time.expected == 50);
}

TEST_CASE("a phase inside another one of the plan is not in the plan") {
  auto run = job({});
  for (const char* path : {"stage", "stage/read", "stagehand", "solve/assemble", "solve", "a/b"}) {
    run = with(run, path, {});
  }
  std::vector<std::string> paths;
  for (const auto& phase : ask(repeat(run, 3)).phases) paths.push_back(phase.path);
  CHECK(paths == std::vector<std::string>{"stage", "stagehand", "solve", "a/b"});
}

TEST_CASE("a kill under the site's default memory is told from one under the user's own") {
  const auto flags = [](std::uint32_t last) {
    return ask({job({.flags = kObservedOom | kObservedDefaultMemory}), job({.flags = last})}).flags;
  };
  CHECK((flags(kObservedOom | kObservedDefaultMemory) & kAdviceDefaultMemory) != 0);
  CHECK((flags(kObservedOom) & kAdviceDefaultMemory) == 0);
  CHECK((flags(0) & kAdviceDefaultMemory) != 0);
}

TEST_CASE("the plan holds the longest phases where there are too many, in their order") {
  auto run = job({});
  for (int i = 0; i < 40; ++i) {
    run = with(run, "p" + std::to_string(i), {.seconds = i < 10 ? 1.0 : 50.0});
  }
  const auto advice = ask(repeat(run, 3));
  REQUIRE(advice.phases.size() == kAdvicePhasesMost);
  CHECK(advice.phases.front().path == "p10");
  CHECK(advice.phases.back().path == "p33");
}

TEST_CASE("packed: the same numbers, and no path that does not fit") {
  const std::string fits(63, 'a'), longer(64, 'b');
  auto run = with(with(job({}), fits, {.used = 2}), longer, {});
  const auto runs = repeat(run, 3);
  const auto advice = ask(runs);
  const auto packed = pack(advice, runs, SiteConfig(), 1000);
  CHECK(packed.head.phases == 1);
  CHECK(std::string(packed.phase[0].path) == fits);
  CHECK(packed.phase[0].nodes == 2);
  CHECK(packed.phase[0].memory_bytes == 1200 * kMiB);
  CHECK(packed.phase[0].runs == 3);
  CHECK(packed.head.made_s == 1000);
  CHECK(packed.head.expires_s == 1000 + 90 * 86400);
  CHECK(packed.head.nodes_asked_most == 4);
  CHECK(packed.head.cpus_per_node == 2);  // 1.5 busy
  CHECK(packed.head.time_limit_s == 420);
  CHECK(std::string(packed.head.policy) == "efficiency>=0.7");
  CHECK(std::string(packed.head.partition) == "batch");
  Advice read, sealed = packed;
  const std::size_t size = seal_advice("1001/solver", sealed);
  const std::string_view bytes(reinterpret_cast<const char*>(&sealed), size);
  CHECK(read_advice("1001/solver", bytes, 1000, read) == AdviceState::kFound);
}

TEST_CASE("packed: advice ages from its newest run, not from the day on which it is packed") {
  auto runs = repeat(job({}), 3);
  runs[0].end_s = 500;
  runs[2].end_s = 800;
  const auto expires = [&](std::int64_t now_s) {
    return pack(ask(runs), runs, SiteConfig(), now_s).head.expires_s - 90 * 86400;
  };
  CHECK(expires(5000) == 800);
  CHECK(expires(700) == 700);  // a clock that is behind
}

TEST_CASE("packed: a peak above what the partition's nodes have makes no unreadable value") {
  const auto runs = repeat(job({.peak_mib = 8000}), 3);
  PartitionLimits limits;
  limits.memory_most_bytes = 4000 * kMiB;
  auto packed = pack(ask(runs, limits), runs, SiteConfig(), 1000);
  CHECK(packed.head.memory_bytes == 4000 * kMiB);
  Advice read;
  const std::size_t size = seal_advice("k", packed);
  const std::string_view bytes(reinterpret_cast<const char*>(&packed), size);
  CHECK(read_advice("k", bytes, 1000, read) == AdviceState::kFound);
}

TEST_CASE("four busy threads that a sample saw as 4.02 are four CPUs") {
  auto run = job({});
  const auto cpus = [&](double busy) {
    run.phases[0].cpus_busy = busy;
    const auto runs = repeat(run, 3);
    return pack(ask(runs), runs, SiteConfig(), 0).head.cpus_per_node;
  };
  CHECK(cpus(4.02) == 4);
  CHECK(cpus(4.2) == 5);
  CHECK(cpus(0.01) == 1);
  CHECK(cpus(0) == 0);
  CHECK(cpus(std::nan("")) == 0);
}

TEST_CASE(
    "confidence is the share of the last runs that the advice before them would have fitted") {
  auto runs = repeat(job({}), 3);
  CHECK(ask(runs).confidence == 0);  // nothing to test it on yet
  runs.push_back(job({}));
  CHECK(ask(runs).confidence == 1);
  runs.push_back(job({.peak_mib = 2000}));  // was advised 1200
  CHECK(ask(runs).confidence == Approx(0.5));
  runs.push_back(job({.seconds = 5000}));  // was advised 420 s
  CHECK(ask(runs).confidence == Approx(1.0 / 3));
  for (int i = 0; i < 10; ++i) runs.push_back(job({}));
  CHECK(ask(runs).confidence == 1);  // only the last ten are looked at
}

TEST_CASE("sizes of a wide range are an even choice that holds both ends") {
  const auto sizes = sizes_between(1, 1'000'000);
  CHECK(sizes.size() == 1024);
  CHECK(sizes.front() == 1);
  CHECK(sizes.back() == 1'000'000);
  CHECK(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end());
  CHECK(sizes_between(3, 3) == std::vector<std::int64_t>{3});
  CHECK(sizes_between(4, 3).empty());
}

TEST_CASE("random runs: within what was seen, enough memory, finite, the same each time") {
  std::mt19937 random(17);
  const char* policies[] = {"efficiency>=0.7", "min-time", "min-cost"};
  for (int round = 0; round < 80; ++round) {
    std::vector<ObservedJob> runs;
    std::int64_t least = 1 << 30, most = 0, peak = 0;
    const std::size_t count = 1 + random() % 12;
    const std::int64_t sizes = static_cast<std::int64_t>(1 + random() % 6);
    for (std::size_t i = 0; i < count; ++i) {
      Spec spec;
      spec.used = static_cast<std::int64_t>(1 + random() % sizes);
      spec.nodes = spec.used + static_cast<std::int64_t>(random() % 3);
      spec.seconds = std::pow(10, static_cast<double>(random() % 700) / 100 - 2);
      spec.peak_mib = static_cast<std::int64_t>(random() % 4000);
      spec.flags = random() % 5 == 0 ? 1u << random() % 5 : 0;
      if (random() % 40 == 0) spec.seconds = std::nan("");
      auto run = job(spec);
      for (int phase = 0; phase < 3; ++phase) {
        Spec part = spec;
        part.used = static_cast<std::int64_t>(1 + random() % spec.used);
        part.seconds = spec.seconds / static_cast<double>(2 + random() % 5);
        run = with(run, std::string(1, static_cast<char>('a' + phase)), part);
      }
      const bool good = (spec.flags & (kObservedOom | kObservedTimeout | kObservedFailed)) == 0;
      if (good && spec.seconds > 0) {
        least = std::min(least, spec.used);
        most = std::max(most, spec.used);
      }
      peak = std::max(peak, spec.peak_mib * kMiB);
      runs.push_back(run);
    }
    const SiteConfig config = config_of(policies[random() % 3]);
    const auto advice = advise(runs, config, {});
    const auto packed = pack(advice, runs, config, 1000);
    const auto again = pack(advise(runs, config, {}), runs, config, 1000);
    CHECK(std::equal(reinterpret_cast<const char*>(&packed),
                     reinterpret_cast<const char*>(&packed) + sizeof(packed),
                     reinterpret_cast<const char*>(&again)));
    CHECK(!advice.reason.empty());
    CHECK((advice.confidence >= 0 && advice.confidence <= 1));
    if (packed.head.nodes > 0) {
      CHECK(packed.head.nodes >= least);
      CHECK(packed.head.nodes <= most);
    }
    if (packed.head.memory_bytes > 0) {
      CHECK(advice.job.memory_bytes >= peak + std::max(peak / 5, 64 * kMiB));
    }
    Advice read, sealed = packed;
    const std::size_t size = seal_advice("k", sealed);
    const std::string_view bytes(reinterpret_cast<const char*>(&sealed), size);
    CHECK(read_advice("k", bytes, 1000, read) == AdviceState::kFound);  // finite, terminated
    // A higher peak asks for no less memory.
    for (auto& observed : runs[random() % runs.size()].phases) {
      if (observed.memory_peak_bytes) *observed.memory_peak_bytes += 100 * kMiB;
    }
    const auto higher = advise(runs, config, {});
    CHECK(higher.job.best.nodes == advice.job.best.nodes);
    CHECK(higher.job.memory_bytes >= advice.job.memory_bytes);
  }
}
