// Nesting, threads, the shell, and what was forgotten. Bounds and folding: phase_limits_test.cpp.
#include "spank/recorder/phases/phase_tracker.h"

#include <doctest/doctest.h>

#include "tests/spank/recorder/phases/tracker_harness.h"

using namespace sphase;
using Harness = sphase::testing::TrackerHarness;

TEST_CASE("phases nest three deep, each with its own time") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.begin(id, "a", 100);
  t.begin(id, "b", 200);
  t.begin(id, "c", 300);
  CHECK(t.tracker.path_of(id) == "a/b/c");
  CHECK(t.tracker.any_open());
  t.end(id, "c", 350);
  t.end(id, "b", 380);
  t.end(id, "a", 400);
  CHECK(t.tracker.path_of(id) == "");
  CHECK_FALSE(t.tracker.any_open());
  t.take(400);
  REQUIRE(t.rows.size() == 3);
  CHECK(t.row("a").wall_ns == 300);
  CHECK(t.row("a/b").wall_ns == 180);
  CHECK(t.row("a/b/c").wall_ns == 50);
  CHECK(t.row("a").depth == 0);
  CHECK(t.row("a/b/c").depth == 2);
  for (const auto& [key, row] : t.rows) CHECK(row.flags == 0);
  CHECK(t.notices.empty());
}

TEST_CASE("the same name again is another instance, and inside itself another path") {
  Harness t;
  const StreamId id = Harness::thread(1);
  for (const std::int64_t at : {0, 100}) {
    t.begin(id, "a", at + 1);
    t.begin(id, "a", at + 2);
    t.end(id, "a", at + 3);
    t.end(id, "a", at + 9);
  }
  t.take(200);
  CHECK(t.row("a", 1).wall_ns == 8);
  CHECK(t.row("a", 2).begin_ns == 101);
  CHECK(t.row("a/a", 2).wall_ns == 1);
}

TEST_CASE("an end without a name ends the innermost phase") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.begin(id, "a", 1);
  t.begin(id, "b", 2);
  t.end(id, "", 3);
  CHECK(t.tracker.path_of(id) == "a");
}

TEST_CASE("an open phase has a row without an end, replaced when it closes") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.begin(id, "a", 1);
  CHECK(t.take(10) == 1);
  CHECK(t.row("a").begin_ns == 1);
  CHECK(t.row("a").end_ns == std::nullopt);
  CHECK(t.row("a").wall_ns == std::nullopt);
  CHECK(t.take(20) == 0);
  t.end(id, "a", 30);
  CHECK(t.take(40) == 1);
  CHECK(t.rows.size() == 1);
  CHECK(t.row("a").end_ns == 30);
}

TEST_CASE("a phase left open is closed when its task exits") {
  Harness t;
  t.begin(Harness::thread(1, 0), "a", 1);
  t.begin(Harness::thread(1, 0), "b", 2);
  t.begin(Harness::thread(1, 1), "other", 2);
  t.tracker.close_task(0, Harness::at(50));
  t.take(60);
  CHECK(t.row("a").end_ns == 50);
  CHECK(t.row("a").flags == kUnclosed);
  CHECK(t.row("a/b").flags == kUnclosed);
  CHECK(t.row("other", 1, 1).end_ns == std::nullopt);
}

TEST_CASE("a phase left open is closed when its process ends, and other processes' stay") {
  Harness t;
  t.begin(Harness::thread(1, 0, 1), "a", 1);
  t.begin(Harness::thread(1, 0, 2), "b", 1);
  t.begin(Harness::shell(0), "s", 1);
  t.tracker.close_client(1, Harness::at(9));
  t.take(10);
  CHECK(t.row("a").flags == kUnclosed);
  CHECK(t.row("b").end_ns == std::nullopt);
  CHECK(t.row("s", 1, 0, true).end_ns == std::nullopt);
}

TEST_CASE("everything left open is closed at the end of the step, at its task's edge") {
  Harness t;
  t.begin(Harness::thread(1, 0), "a", 1);
  t.begin(Harness::thread(1, 1), "a", 1);
  t.tracker.close_all([](std::uint32_t task) { return Harness::at(100 + task); });
  t.take(200, true);
  CHECK(t.row("a", 1, 0).end_ns == 100);
  CHECK(t.row("a", 1, 1).end_ns == 101);
  CHECK_FALSE(t.tracker.any_open());
}

TEST_CASE("an end that comes twice is noticed once, with the name of the culprit") {
  Harness t;
  const StreamId id = Harness::thread(1, 3);
  t.begin(id, "outer", 1);
  t.begin(id, "a", 2);
  t.end(id, "a", 3);
  for (int i = 0; i < 5; ++i) t.end(id, "a", 4 + i);
  t.take(20);
  CHECK(t.row("outer/a", 1, 3).end_ns == 3);
  REQUIRE(t.notices.size() == 1);
  CHECK(t.notices[0].first == notice::kUnmatchedEnd);
  CHECK(t.notices[0].second.find("task 3") != std::string::npos);
  CHECK(t.notices[0].second.find("\"a\"") != std::string::npos);
  CHECK(t.notices[0].second.find("outer") != std::string::npos);
  t.end(id, "b", 30);
  CHECK(t.notices.size() == 2);
}

TEST_CASE("an end by the outer name closes what is inside, flagged unclosed") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.begin(id, "a", 1);
  t.begin(id, "b", 2);
  t.begin(id, "c", 3);
  t.end(id, "a", 9);
  t.take(10);
  CHECK(t.row("a").flags == 0);
  CHECK(t.row("a/b").flags == kUnclosed);
  CHECK(t.row("a/b/c").flags == kUnclosed);
  CHECK(t.row("a/b/c").end_ns == 9);
}

TEST_CASE("a phase begun in one thread may end in another of the same process") {
  Harness t;
  t.begin(Harness::thread(1), "a", 1);
  t.end(Harness::thread(2), "a", 9);
  t.take(10);
  CHECK(t.row("a").end_ns == 9);
  CHECK(t.row("a").flags == 0);
  CHECK(t.notices.empty());
}

TEST_CASE("a phase is never ended by another process or task") {
  Harness t;
  t.begin(Harness::thread(1, 0, 1), "a", 1);
  t.end(Harness::thread(1, 0, 2), "a", 9);
  t.end(Harness::thread(1, 1, 1), "a", 9);
  t.end(Harness::shell(0), "a", 9);
  CHECK(t.tracker.path_of(Harness::thread(1, 0, 1)) == "a");
  CHECK(t.notices_of(notice::kUnmatchedEnd) == 1);
}

TEST_CASE("ten threads in step are one instance from the first begin to the last end") {
  Harness t;
  for (std::uint32_t tid = 1; tid <= 10; ++tid) t.begin(Harness::thread(tid), "a", 100 + tid);
  for (std::uint32_t tid = 1; tid <= 10; ++tid) t.end(Harness::thread(tid), "a", 200 + tid);
  t.take(300);
  REQUIRE(t.rows.size() == 1);
  CHECK(t.row("a").threads == 10);
  CHECK(t.row("a").count == 10);
  CHECK(t.row("a").begin_ns == 101);
  CHECK(t.row("a").end_ns == 210);
}

TEST_CASE("markers that overtake each other on the way still give first begin and last end") {
  Harness t;
  t.begin(Harness::thread(1), "a", 105);
  t.begin(Harness::thread(2), "a", 100);
  t.end(Harness::thread(1), "a", 210);
  t.end(Harness::thread(2), "a", 200);
  t.take(300);
  CHECK(t.row("a").begin_ns == 100);
  CHECK(t.row("a").end_ns == 210);
  CHECK(t.row("a").wall_ns == 110);
}

TEST_CASE("new threads for each iteration give new numbers") {
  Harness t;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const StreamId id = Harness::thread(100 + i);
    t.begin(id, "a", i * 10);
    t.end(id, "a", i * 10 + 5);
  }
  t.take(100);
  CHECK(t.rows.size() == 3);
  CHECK(t.row("a", 3).begin_ns == 30);
  CHECK(t.row("a", 3).threads == 1);
}

TEST_CASE("a slower thread opens its instance again") {
  Harness t;
  const StreamId fast = Harness::thread(1);
  const StreamId slow = Harness::thread(2);
  t.begin(fast, "a", 1);
  t.begin(slow, "a", 2);
  t.end(fast, "a", 10);
  t.end(slow, "a", 11);
  t.begin(fast, "a", 20);
  t.end(fast, "a", 30);
  t.take(31);
  CHECK(t.row("a", 2).threads == 1);
  t.begin(slow, "a", 32);
  t.end(slow, "a", 40);
  t.take(50);
  REQUIRE(t.rows.size() == 2);
  CHECK(t.row("a", 2).threads == 2);
  CHECK(t.row("a", 2).begin_ns == 20);
  CHECK(t.row("a", 2).end_ns == 40);
  CHECK(t.row("a", 2).count == 2);
}

TEST_CASE("a program's phases lie inside those that the shell of its task has open") {
  Harness t;
  t.begin(Harness::shell(), "solve", 1);
  t.begin(Harness::thread(1), "iterate", 2);
  CHECK(t.tracker.path_of(Harness::thread(1)) == "solve/iterate");
  CHECK(t.tracker.path_of(Harness::thread(9)) == "solve");
  t.begin(Harness::thread(1, 1), "iterate", 2);  // another task: not inside
  t.end(Harness::thread(1), "iterate", 3);
  t.end(Harness::thread(1, 1), "iterate", 3);
  t.end(Harness::shell(), "solve", 4);
  t.take(5);
  CHECK(t.row("solve", 1, 0, true).end_ns == 4);
  CHECK(t.row("solve/iterate").depth == 1);
  CHECK(t.row("iterate", 1, 1).depth == 0);
}

TEST_CASE("a shell phase and a program's phase of one path are two rows") {
  Harness t;
  t.begin(Harness::shell(), "a", 1);
  t.end(Harness::shell(), "a", 5);
  t.begin(Harness::thread(1), "a", 6);
  t.end(Harness::thread(1), "a", 9);
  t.take(10);
  CHECK(t.rows.size() == 2);
  CHECK(t.row("a", 1, 0, true).end_ns == 5);
  CHECK(t.row("a", 1, 0, false).end_ns == 9);
}

TEST_CASE(
    "an end that was dropped shows at the next marker, and is flagged only if drops happened") {
  for (const bool dropped : {false, true}) {
    CAPTURE(dropped);
    Harness t;
    const StreamId id = Harness::thread(1);
    t.tracker.begin(id, "a", 0, false, Harness::at(1));
    t.tracker.begin(id, "b", 1, false, Harness::at(2));
    // The writer left b and a: it has nothing open before this begin.
    t.tracker.begin(id, "c", 0, dropped, Harness::at(9));
    CHECK(t.tracker.path_of(id) == "c");
    t.take(10);
    CHECK(t.row("a").end_ns == 9);
    CHECK(t.row("a/b").flags == (dropped ? kEndLost : kUnclosed));
  }
}

TEST_CASE("the end of an outer phase after a lost one closes the lost one first") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.tracker.begin(id, "a", 0, false, Harness::at(1));
  t.tracker.begin(id, "b", 1, false, Harness::at(2));
  t.tracker.end(id, "", 0, true, Harness::at(9));  // b's end was lost: this one is a's
  t.take(10);
  CHECK(t.row("a").flags == 0);
  CHECK(t.row("a/b").flags == kEndLost);
  CHECK(t.tracker.path_of(id) == "");
}

TEST_CASE("an end whose begin was dropped is no culprit's") {
  Harness t;
  t.tracker.end(Harness::thread(1), "a", 0, true, Harness::at(9));
  CHECK(t.notices.empty());
}

TEST_CASE("a marker without a name begins nothing") {
  Harness t;
  t.begin(Harness::thread(1), "", 1);
  CHECK_FALSE(t.tracker.any_open());
}

TEST_CASE("a stream whose times go back gives no negative time") {
  Harness t;
  const StreamId id = Harness::thread(1);
  t.begin(id, "a", 100);
  t.begin(id, "b", 50);
  t.end(id, "b", 20);
  t.end(id, "a", 10);
  t.take(200);
  CHECK(t.row("a").wall_ns == 0);
  CHECK(t.row("a/b").wall_ns == 0);
  CHECK(t.row("a/b").begin_ns >= t.row("a").begin_ns);
}

TEST_CASE("counters that were read later than a tick after the marker are flagged late") {
  Harness t;
  const StreamId id = Harness::thread(1);
  const auto edge = [](std::int64_t time_ns, std::int64_t cpu_ns, std::int64_t lag_ns) {
    Edge out = Harness::at(time_ns);
    out.task_cpu_ns = cpu_ns;
    out.task_resolution_ns = 4'000'000;
    out.task_source = "cgroup";
    out.lag_ns = lag_ns;
    return out;
  };
  t.tracker.begin(id, "a", -1, false, edge(0, 0, 10));
  t.tracker.end(id, "a", -1, false, edge(1'000'000'000, 900'000'000, 20));
  t.tracker.begin(id, "b", -1, false, edge(1'000'000'000, 900'000'000, 10));
  t.tracker.end(id, "b", -1, false, edge(2'000'000'000, 1'800'000'000, 5'000'000));
  t.take(3'000'000'000);
  CHECK(t.row("a").flags == 0);
  CHECK(t.row("a").cpu->time_ns == 900'000'000);
  CHECK(t.row("a").edge_lag_ns == 20);
  CHECK(t.row("b").flags == kLate);
  CHECK(t.row("b").edge_lag_ns == 5'000'000);
}

TEST_CASE("where no CPU time is known, it is missing and not 0") {
  Harness t;
  t.begin(Harness::thread(1), "a", 1);
  t.end(Harness::thread(1), "a", 2);
  t.take(3);
  CHECK_FALSE(t.row("a").cpu);
  CHECK_FALSE(t.row("a").memory_peak_bytes);
}
