// What a hostile or a very busy program meets: bounds, folding, and invariants under random
// markers.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "common/ring.h"
#include "tests/spank/recorder/phases/tracker_harness.h"

using namespace sphase;
using Harness = sphase::testing::TrackerHarness;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kManyPairs = 200'000;
#else
constexpr std::int64_t kManyPairs = 1'000'000;
#endif

}  // namespace

TEST_CASE("a phase deeper than the limit is not recorded, and that is said once") {
  Harness t;
  const StreamId id = Harness::thread(1);
  for (int i = 0; i < 100; ++i) t.begin(id, "d", i);
  t.take(200);
  CHECK(t.rows.size() == SPHASE_MAX_DEPTH);
  CHECK(t.notices_of(notice::kTooDeep) == 1);
  t.tracker.close_all([](std::uint32_t) { return Harness::at(300); });
  t.take(400, true);
  for (const auto& [key, row] : t.rows) CHECK(row.end_ns == 300);
}

TEST_CASE("more paths than the limit become one path, whose phases still end by their names") {
  Harness t;
  const StreamId id = Harness::thread(1);
  const int many = static_cast<int>(PhaseTracker::kMaxPaths) + 50;
  for (int i = 0; i < many; ++i) {
    const std::string name = "p" + std::to_string(i);
    t.begin(id, name, i * kSecond);
    t.end(id, name, i * kSecond + 5);
  }
  t.take(many * kSecond, true);
  CHECK(t.notices_of(notice::kLimit) == 1);
  CHECK(t.notices_of(notice::kUnmatchedEnd) == 0);
  CHECK(t.count_of("(other)") >= 50);
  CHECK_FALSE(t.tracker.any_open());
  for (const auto& [key, row] : t.rows) {
    CHECK(row.wall_ns == 5);
    CHECK((row.flags & kUnclosed) == 0);
  }
}

TEST_CASE("more threads with open phases than the limit are not recorded, and that is said") {
  Harness t;
  const auto many = static_cast<std::uint32_t>(PhaseTracker::kMaxStreams) + 100;
  for (std::uint32_t tid = 1; tid <= many; ++tid) t.begin(Harness::thread(tid), "a", tid);
  t.take(many);
  CHECK(t.row("a").threads == static_cast<std::int64_t>(PhaseTracker::kMaxStreams));
  CHECK(t.notices_of(notice::kLimit) == 1);
}

TEST_CASE("threads that come and go without end leave nothing behind") {
  Harness t;
  const auto many = 3 * static_cast<std::uint32_t>(PhaseTracker::kMaxStreams);
  for (std::uint32_t tid = 1; tid <= many; ++tid) {
    t.begin(Harness::thread(tid), "a", tid * 2);
    t.end(Harness::thread(tid), "a", tid * 2 + 1);
  }
  t.take(many * 3, true);
  CHECK(t.notices_of(notice::kLimit) == 0);
  std::int64_t pairs = 0;
  for (const auto& [key, row] : t.rows) pairs += row.count;
  CHECK(pairs == many);
}

TEST_CASE("a million pairs of one name fold: the count is exact, the rows are bounded") {
  Harness t;
  const StreamId id = Harness::thread(1);
  constexpr std::int64_t kPairs = kManyPairs;
  constexpr std::int64_t kApart = kSecond / kPairs;  // ns: one second in all
  std::int64_t now = kSecond;
  for (std::int64_t i = 0; i < kPairs; ++i, now += kApart) {
    Edge edge = Harness::at(now);
    edge.task_cpu_ns = now;
    edge.task_resolution_ns = 4'000'000;
    edge.task_source = "cgroup";
    t.tracker.begin(id, "hot", 0, false, edge);
    edge.time_ns += kApart / 2;
    t.tracker.end(id, "hot", 0, false, edge);
    if (i % (kPairs / 10) == kPairs / 20) t.take(now);
  }
  t.take(now, true);
  std::int64_t pairs = 0;
  std::int64_t wall_ns = 0;
  int folded = 0;
  for (const auto& [key, row] : t.rows) {
    pairs += row.count;
    wall_ns += *row.wall_ns;
    if ((row.flags & kFolded) == 0) continue;
    ++folded;
    CHECK((row.flags & kInterpolated) != 0);
    REQUIRE(row.cpu);
    CHECK(std::string(row.cpu->source) == "share");
    CHECK(row.cpu->time_ns <= *row.end_ns - row.begin_ns);
    CHECK(row.cpu->resolution_ns >= row.cpu->time_ns / 2);
  }
  CHECK(pairs == kPairs);
  CHECK(wall_ns == kPairs * (kApart / 2));
  CHECK(folded > 0);
  CHECK(t.rows.size() < 300);
  CHECK(t.notices_of(notice::kFolded) == 1);
}

TEST_CASE("a path that stays hot for hours keeps few rows") {
  Harness t;
  const StreamId id = Harness::thread(1);
  std::int64_t now = kSecond;
  std::int64_t pairs = 0;
  for (int second = 0; second < 2 * 3600; ++second) {
    for (int i = 0; i < 20; ++i, ++pairs) {
      t.begin(id, "hot", now + i * 1000);
      t.end(id, "hot", now + i * 1000 + 500);
    }
    now += kSecond;
    if (second % 10 == 0) t.take(now);
  }
  t.take(now, true);
  CHECK(t.rows.size() < PhaseTracker::kMaxKept + 2000);
  std::int64_t counted = 0;
  for (const auto& [key, row] : t.rows) counted += row.count;
  CHECK(counted == pairs);
}

TEST_CASE("an instance that was told as open is told as closed even where others fold") {
  Harness t;
  const StreamId id = Harness::thread(1);
  std::int64_t pairs = 0;
  for (int second = 1; second <= 5; ++second) {
    for (int i = 0; i < 500; ++i, ++pairs) {
      const std::int64_t now = second * kSecond + i * 1'000'000;
      t.begin(id, "hot", now);
      if (i == 400) t.take(now);  // while it is open
      t.end(id, "hot", now + 900'000);
    }
  }
  t.take(10 * kSecond, true);
  std::int64_t counted = 0;
  for (const auto& [key, row] : t.rows) {
    CHECK(row.end_ns.has_value());
    counted += row.count;
  }
  CHECK(counted == pairs);
}

TEST_CASE("notices are bounded however many names are wrong") {
  Harness t;
  for (int i = 0; i < 1000; ++i) t.end(Harness::thread(1), "n" + std::to_string(i), i);
  CHECK(t.notices.size() <= 100);
}

namespace {

struct Interval {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
};

/// Random begins and ends from many threads; ends sometimes wrong, missing, or from elsewhere.
std::int64_t play(Harness& t, unsigned seed, bool hostile) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::string>> open(12);
  std::int64_t now = kSecond;
  std::int64_t begun = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += static_cast<std::int64_t>(random() % 3'000'000);
    const auto which = static_cast<std::uint32_t>(random() % open.size());
    const StreamId id = Harness::thread(which + 1, which % 3, 1 + which % 2);
    const std::string name = "p" + std::to_string(random() % 5);
    const std::int64_t time = hostile ? static_cast<std::int64_t>(random() % (2 * kSecond)) : now;
    const int depth = hostile ? static_cast<int>(random() % 40) - 1 : -1;
    const bool dropped = hostile && random() % 3 == 0;
    if (random() % 2 == 0 && open[which].size() < 6) {
      t.tracker.begin(id, name, depth, dropped, Harness::at(time));
      open[which].push_back(name);
      ++begun;
    } else if (!open[which].empty() && !hostile) {
      t.tracker.end(id, open[which].back(), -1, false, Harness::at(time));
      open[which].pop_back();
    } else if (hostile) {
      t.tracker.end(id, random() % 4 == 0 ? "" : name, depth, dropped, Harness::at(time));
      open[which].clear();
    }
    if (random() % 500 == 0) t.take(now);
    if (random() % 1000 == 0) {
      Memory memory;
      memory.anon = static_cast<std::int64_t>(random() % 1'000'000);
      t.tracker.memory_seen(memory, now);
    }
  }
  t.tracker.close_all([&](std::uint32_t) { return Harness::at(now); });
  t.take(now, true);
  return begun;
}

}  // namespace

TEST_CASE("well-nested markers of many threads: every pair is counted, children lie inside") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Harness t;
    const std::int64_t begun = play(t, seed, false);
    std::int64_t counted = 0;
    std::map<std::pair<std::uint32_t, std::string>, Interval> span;
    for (const auto& [key, row] : t.rows) {
      counted += row.count;
      REQUIRE(row.end_ns);
      CHECK(*row.end_ns >= row.begin_ns);
      CHECK(*row.wall_ns >= 0);
      Interval& all = span[{row.task, row.path}];
      all.begin = std::min(all.begin, row.begin_ns);
      all.end = std::max(all.end, *row.end_ns);
    }
    CHECK(counted == begun);
    for (const auto& [key, row] : t.rows) {
      const auto slash = row.path.rfind('/');
      if (slash == std::string::npos) continue;
      const auto parent = span.find({row.task, row.path.substr(0, slash)});
      REQUIRE(parent != span.end());
      CHECK(row.begin_ns >= parent->second.begin);
      CHECK(*row.end_ns <= parent->second.end);
    }
    CHECK(t.notices_of(notice::kUnmatchedEnd) == 0);
  }
}

TEST_CASE("hostile markers: no crash, no negative time, nothing left open") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    Harness t;
    (void)play(t, seed, true);
    CHECK_FALSE(t.tracker.any_open());
    for (const auto& [key, row] : t.rows) {
      REQUIRE(row.end_ns);
      CHECK(*row.end_ns >= row.begin_ns);
      CHECK(*row.wall_ns >= 0);
      CHECK(row.count >= 1);
      CHECK(row.threads >= 1);
      CHECK(row.depth >= 0);
      CHECK(row.depth < static_cast<int>(2 * SPHASE_MAX_DEPTH));
    }
  }
}
