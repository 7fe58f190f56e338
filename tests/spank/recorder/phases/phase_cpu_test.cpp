#include <doctest/doctest.h>

#include <random>
#include <string>

#include "spank/recorder/phases/phase_row.h"

using namespace sphase;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTick = 4 * kMs;

Edge edge(std::int64_t time_ns, std::optional<std::int64_t> process,
          std::optional<std::int64_t> task) {
  Edge out;
  out.time_ns = time_ns;
  out.client = 1;
  out.process_cpu_ns = process;
  out.task_cpu_ns = task;
  out.task_resolution_ns = kTick;
  out.task_source = "cgroup";
  return out;
}

}  // namespace

TEST_CASE("where the process's own time agrees with the group's, it is the exact one") {
  const auto cpu = cpu_between(edge(0, 0, 0), edge(1000 * kMs, 990 * kMs, 988 * kMs));
  REQUIRE(cpu);
  CHECK(cpu->time_ns == 990 * kMs);
  CHECK(std::string(cpu->source) == "process");
  CHECK(cpu->resolution_ns == 0);  // one busy thread, stamped at the edge
}

TEST_CASE("threads beside the marking one are a tick behind each") {
  const auto cpu = cpu_between(edge(0, 0, 0), edge(1000 * kMs, 3900 * kMs, 3900 * kMs));
  REQUIRE(cpu);
  CHECK(std::string(cpu->source) == "process");
  CHECK(cpu->resolution_ns == 3 * kTick);
}

TEST_CASE("where child processes did part of the work, the group's time counts") {
  const auto cpu = cpu_between(edge(0, 0, 0), edge(1000 * kMs, 10 * kMs, 900 * kMs));
  REQUIRE(cpu);
  CHECK(cpu->time_ns == 900 * kMs);
  CHECK(std::string(cpu->source) == "cgroup");
  CHECK(cpu->resolution_ns >= kTick);
}

TEST_CASE("the delay of the reads is part of the group's resolution") {
  Edge begin = edge(0, std::nullopt, 0);
  Edge end = edge(1000 * kMs, std::nullopt, 500 * kMs);
  begin.lag_ns = 2 * kMs;
  end.lag_ns = 3 * kMs;
  CHECK(cpu_between(begin, end)->resolution_ns == kTick + 5 * kMs);
}

TEST_CASE("one of both is enough, and with none there is no number") {
  CHECK(std::string(cpu_between(edge(0, 0, std::nullopt), edge(9, 5, std::nullopt))->source) ==
        "process");
  CHECK(std::string(cpu_between(edge(0, std::nullopt, 0), edge(9, std::nullopt, 5))->source) ==
        "cgroup");
  CHECK_FALSE(cpu_between(edge(0, std::nullopt, std::nullopt), edge(9, 5, 5)));
  CHECK_FALSE(cpu_between(edge(0, 5, std::nullopt), edge(9, std::nullopt, 5)));
}

TEST_CASE("stamps of two processes are never subtracted") {
  Edge begin = edge(0, 0, std::nullopt);
  Edge end = edge(9, 5, std::nullopt);
  end.client = 2;
  CHECK_FALSE(cpu_between(begin, end));
}

TEST_CASE("counters that go down give 0, never a negative time") {
  CHECK(cpu_between(edge(0, 100, 100), edge(1000 * kMs, 50, 50))->time_ns == 0);
  CHECK(cpu_between(edge(0, 100, std::nullopt), edge(0, 50, std::nullopt))->time_ns == 0);
}

TEST_CASE("whatever the edges say, times and resolutions are not negative") {
  std::mt19937_64 random(7);
  const auto any = [&]() -> std::optional<std::int64_t> {
    if (random() % 4 == 0) return std::nullopt;
    return static_cast<std::int64_t>(random() % 1'000'000'000'000);
  };
  for (int round = 0; round < 10'000; ++round) {
    Edge begin = edge(static_cast<std::int64_t>(random() % 1'000'000'000'000), any(), any());
    Edge end = edge(static_cast<std::int64_t>(random() % 1'000'000'000'000), any(), any());
    const auto cpu = cpu_between(begin, end);
    if (!cpu) continue;
    CHECK(cpu->time_ns >= 0);
    CHECK(cpu->resolution_ns >= 0);
    CHECK(cpu->source != nullptr);
  }
}
