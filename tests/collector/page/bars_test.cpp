// Source: collector/page/bars.cpp.
#include "collector/page/bars.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

PhaseMark mark(const std::string& path, double begin_s, double end_s, int task = 0,
               std::int64_t number = 1) {
  PhaseMark made;
  made.path = path;
  made.task = task;
  made.number = number;
  made.depth = std::count(path.begin(), path.end(), '/');
  made.begin_ns = static_cast<std::int64_t>(begin_s * 1e9);
  made.end_ns = static_cast<std::int64_t>(end_s * 1e9);
  made.cpu_time_ns = made.end_ns - made.begin_ns;
  return made;
}

Run run_of(const std::string& step, double begin_s, double end_s, std::vector<PhaseMark> phases) {
  Run run;
  run.step = step;
  run.node = "n1";
  run.begin_ns = static_cast<std::int64_t>(begin_s * 1e9);
  run.end_ns = static_cast<std::int64_t>(end_s * 1e9);
  run.phases = std::move(phases);
  return run;
}

Timeline timeline_of(std::vector<Run> runs) {
  Timeline timeline;
  timeline.end_ns = 100 * kSecond;
  timeline.runs = std::move(runs);
  return timeline;
}

const RunBars& of_step(const Lanes& lanes, const std::string& step, bool of_job = false) {
  const auto found = std::find_if(lanes.runs.begin(), lanes.runs.end(), [&](const RunBars& one) {
    return one.run != nullptr && one.run->step == step && one.of_job == of_job;
  });
  REQUIRE(found != lanes.runs.end());
  return *found;
}

}  // namespace

TEST_CASE("tasks that mark the same phase have one bar, from the first begin to the last end") {
  const Timeline timeline =
      timeline_of({run_of("0", 0, 50, {mark("solve", 1, 9, 0), mark("solve", 2, 12, 1)})});
  const Lanes lanes = lanes_of(timeline, 1000);
  const auto& bars = of_step(lanes, "0").bars;
  REQUIRE(bars.size() == 1);
  CHECK(bars[0].begin_ns == kSecond);
  CHECK(bars[0].end_ns == 12 * kSecond);
  CHECK(bars[0].tasks == 2);
  CHECK(bars[0].cpu_time_ns == 18 * kSecond);
  CHECK(lanes.joined_ns == 0);
}

TEST_CASE("a phase has the row of its depth, below its step, or the next free one") {
  const Timeline timeline = timeline_of({run_of(
      "0", 0, 50, {mark("solve", 1, 20), mark("solve/io", 2, 3), mark("solve", 15, 30, 0, 2)})});
  const Lanes lanes = lanes_of(timeline, 1000);
  const auto& one = of_step(lanes, "0");
  REQUIRE(one.bars.size() == 3);
  CHECK(one.bars[0].row == 1);
  CHECK(one.bars[1].row == 2);
  CHECK(one.bars[2].row == 2);  // the first is still open
  CHECK(one.rows == 3);
}

TEST_CASE("phases of the job script have a lane of their own") {
  PhaseMark shell = mark("stage", 1, 20);
  shell.shell = true;
  const Timeline timeline = timeline_of({run_of("batch", 0, 50, {shell, mark("inner", 2, 3)})});
  const Lanes lanes = lanes_of(timeline, 1000);
  REQUIRE(of_step(lanes, "batch", true).bars.size() == 1);
  CHECK(of_step(lanes, "batch", true).bars[0].path == "stage");
  REQUIRE(of_step(lanes, "batch").bars.size() == 1);
  CHECK(of_step(lanes, "batch").bars[0].path == "inner");
}

TEST_CASE("what a program marks inside of a shell phase lies below that, or right below the run") {
  PhaseMark shell = mark("run", 1, 20);
  shell.shell = true;
  const Timeline timeline = timeline_of({run_of("0", 0, 50, {shell, mark("run/solve", 2, 3)}),
                                         run_of("batch", 0, 50, {shell, mark("run/sort", 2, 3)})});
  const Lanes lanes = lanes_of(timeline, 1000);
  REQUIRE(of_step(lanes, "0").bars.size() == 2);
  CHECK(of_step(lanes, "0").bars[0].row == 1);
  CHECK(of_step(lanes, "0").bars[1].row == 2);
  REQUIRE(of_step(lanes, "batch").bars.size() == 1);
  CHECK(of_step(lanes, "batch").bars[0].row == 1);
}

TEST_CASE("steps at one time lie below each other, steps in turn side by side") {
  const Timeline timeline =
      timeline_of({run_of("batch", 0, 90, {}), run_of("0", 1, 40, {mark("a", 2, 3)}),
                   run_of("1", 41, 80, {}), run_of("2", 30, 50, {})});
  const Lanes lanes = lanes_of(timeline, 1000);
  CHECK(of_step(lanes, "batch").first_row == 0);
  CHECK(of_step(lanes, "0").first_row == 1);
  CHECK(of_step(lanes, "1").first_row == 1);
  CHECK(of_step(lanes, "2").first_row == 3);
}

TEST_CASE("too many bars are joined where they could not be told apart, and counted") {
  std::vector<PhaseMark> marks;
  for (int i = 0; i < 10'000; ++i) {
    marks.push_back(mark("tiny", 10 + i * 0.001, 10 + i * 0.001 + 0.0005, 0, i + 1));
  }
  marks.push_back(mark("long", 60, 90));
  const Timeline timeline = timeline_of({run_of("0", 0, 100, marks)});
  const Lanes lanes = lanes_of(timeline, 500);
  const auto& bars = of_step(lanes, "0").bars;
  CHECK(bars.size() <= 500);
  CHECK(lanes.joined_ns > 0);
  std::int64_t count = 0, cpu_ns = 0;
  for (const auto& bar : bars) {
    if (bar.path != "tiny") continue;
    count += bar.count;
    cpu_ns += bar.cpu_time_ns.value_or(0);
  }
  CHECK(count == 10'000);
  CHECK(cpu_ns == doctest::Approx(10'000 * 500'000.0).epsilon(0.001));
  CHECK(std::any_of(bars.begin(), bars.end(), [](const Bar& bar) {
    return bar.path == "long" && bar.number == 1 && bar.end_ns == 90 * kSecond;
  }));
}
