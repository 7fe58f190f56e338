// A whole step: real processes of this test as its tasks, markers through a real ring.
#include "spank/recorder/session.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "common/clock.h"
#include "common/vocabulary.h"
#include "spank/recorder/store/store_thread.h"
#include "tests/spank/recorder/session_harness.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// On a busy machine counters may be read late, which is right to say.
std::uint32_t flags_of(const PhaseRow& row) { return row.flags & ~std::uint32_t{kLate}; }

}  // namespace

TEST_CASE("a step that runs `true` has exactly two samples: its start and its end") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const int pid = task.pid();
  task.end();
  step.exit(0, pid, 0);
  step.session.finish("step ended");
  step.take();
  REQUIRE(step.samples.size() == 2);
  CHECK(step.samples_of("start") == 1);
  CHECK(step.samples_of("end") == 1);
  CHECK(step.samples[0].time_ns < step.samples[1].time_ns);
  CHECK(step.samples[0].processes == 1);
  REQUIRE(step.samples[1].processes);
  CHECK(*step.samples[1].processes == 0);
  CHECK(step.state.end_reason == "step ended");
  CHECK(step.state.end_ns);
  CHECK(step.state.cpu.source == "proc stat");
  CHECK(step.state.cpu.reason != "");
}

TEST_CASE("a task's row has its start, its end and how it ended") {
  Task task;
  Step step;
  step.attach(3, task.pid());
  step.take();
  REQUIRE(step.tasks.size() == 1);
  CHECK(step.tasks[0].task == 3);
  CHECK(step.tasks[0].end_ns == std::nullopt);
  CHECK(step.tasks[0].exit_status == std::nullopt);
  step.exit(3, task.pid(), 9);
  step.take();
  REQUIRE(step.tasks.size() == 2);
  CHECK(step.tasks[1].exit_status == 9);
  CHECK(*step.tasks[1].end_ns >= *step.tasks[1].start_ns);
  CHECK(step.tasks[1].cpu_time_ns);
}

TEST_CASE("with two tasks the first that exits gives a sample of its own, the last one the end") {
  Task a, b;
  Step step;
  step.attach(0, a.pid());
  step.attach(1, b.pid());
  step.exit(0, a.pid());
  step.exit(1, b.pid());
  step.session.finish("step ended");
  step.take();
  CHECK(step.samples_of("start") == 1);
  CHECK(step.samples_of("task end") == 1);
  CHECK(step.samples_of("end") == 1);
  CHECK(step.samples.size() == 3);
}

TEST_CASE("a step whose tasks were never reaped still has an end") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  step.session.finish("slurmstepd vanished");
  step.session.finish("step ended");  // comes too late
  step.take();
  CHECK(step.samples_of("end") == 1);
  CHECK(step.state.end_reason == "slurmstepd vanished");
}

TEST_CASE("a step that never had a task has no sample, but an end") {
  Step step;
  step.exit(7, 12345);
  step.session.finish("step ended");
  step.take();
  CHECK(step.samples.empty());
  CHECK(step.tasks.empty());
  CHECK(step.state.end_ns);
}

TEST_CASE("samples come periodically") {
  Task task;
  Step step(10);
  step.attach(0, task.pid());
  CHECK(poll_until([&] {
    step.take();
    return step.samples_of("tick") >= 5;
  }));
  for (std::size_t i = 1; i < step.samples.size(); ++i) {
    CHECK(step.samples[i].time_ns > step.samples[i - 1].time_ns);
  }
}

TEST_CASE("a program's markers become phases, values and attributes") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  REQUIRE(client == 1);
  const std::int64_t before = epoch_ns();
  CHECK(step.mark(client, SPHASE_BEGIN, "solve"));
  CHECK(step.mark(client, SPHASE_VALUE, "residual", 0.25));
  CHECK(step.mark(client, SPHASE_ATTR,
                  {"cells\0"
                   "10",
                   8}));
  CHECK(step.mark(client, SPHASE_END, "solve"));
  REQUIRE(step.is_drained());
  step.take();
  const PhaseRow solve = step.phase("solve");
  CHECK(solve.task == 0);
  CHECK(flags_of(solve) == 0);
  REQUIRE(solve.end_ns);
  CHECK(solve.begin_ns >= before - 1'000'000'000);
  CHECK(*solve.end_ns <= epoch_ns() + 1'000'000'000);
  CHECK(solve.cpu);
  REQUIRE(step.values.size() == 1);
  CHECK(step.values[0].path == "solve");
  CHECK(step.values[0].name == "residual");
  CHECK(step.values[0].value == 0.25);
  REQUIRE(step.attributes.size() == 1);
  CHECK(step.attributes[0].key == "cells");
  CHECK(step.attributes[0].value == "10");
  CHECK(step.state.markers == 4);
  CHECK(step.state.markers_invalid == 0);
  CHECK(step.state.edge_lag_p50_ns);
}

TEST_CASE("a phase left open is closed when its task exits, flagged unclosed") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  CHECK(step.mark(client, SPHASE_BEGIN, "open"));
  step.exit(0, task.pid());
  step.take();
  CHECK(step.phase("open").end_ns);
  CHECK(flags_of(step.phase("open")) == kUnclosed);
}

TEST_CASE("markers that are still in the ring at the end are read before it") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  step.session.stop();  // the edge thread reads no more
  for (int i = 0; i < 100; ++i) {
    CHECK(step.mark(client, SPHASE_BEGIN, "a"));
    CHECK(step.mark(client, SPHASE_END, "a"));
  }
  step.session.finish("step ended");
  step.take();
  CHECK(step.state.markers == 200);
}

TEST_CASE("a phase that a process left open is closed soon after the process ended") {
  Task task, helper;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(helper.pid());
  REQUIRE(client != 0);  // of the only task there is
  CHECK(step.mark(client, SPHASE_BEGIN, "helper"));
  REQUIRE(step.is_drained());
  step.session.look_for_ended_clients();
  step.take();
  CHECK_FALSE(step.phase("helper").end_ns);
  helper.end();
  CHECK(poll_until([&] {
    step.session.look_for_ended_clients();
    step.take();
    return step.phase("helper").end_ns.has_value();
  }));
  CHECK(flags_of(step.phase("helper")) == kUnclosed);
  CHECK(step.mark(client, SPHASE_BEGIN, "ghost"));
  REQUIRE(step.is_drained());
  step.take();
  CHECK(step.state.markers_invalid == 1);
}

TEST_CASE("what is not a marker is counted and changes nothing") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  CHECK(step.mark(0, SPHASE_BEGIN, "a"));
  CHECK(step.mark(99, SPHASE_BEGIN, "a"));
  CHECK(step.mark(client, 0, "a"));
  CHECK(step.mark(client, 77, "a"));
  CHECK(step.mark(client, SPHASE_VALUE, "", 1));
  CHECK(step.mark(client, SPHASE_VALUE, "nan", std::nan("")));
  REQUIRE(step.is_drained());
  step.take();
  CHECK(step.state.markers == 6);
  CHECK(step.state.markers_invalid == 6);
  CHECK(step.phases.empty());
  CHECK(step.values.empty());
}

TEST_CASE("a marker's time from the future, or from before the step, is not believed") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  const std::int64_t before = epoch_ns();
  for (const std::uint64_t forged :
       {std::uint64_t{1}, UINT64_MAX, std::uint64_t{INT64_MAX}, std::uint64_t{0}}) {
    CHECK(step.writer.push({client, SPHASE_BEGIN, "a", forged}));
    CHECK(step.writer.push({client, SPHASE_END, "a", forged}));
  }
  REQUIRE(step.is_drained());
  step.take();
  CHECK(step.phases.size() == 4);
  for (const PhaseRow& row : step.phases) {
    CHECK(row.begin_ns >= before - 1'000'000'000);
    CHECK(*row.end_ns <= epoch_ns() + 1'000'000'000);
    CHECK(*row.wall_ns >= 0);
  }
}

TEST_CASE("a process of no task of the step is refused") {
  Task a, b, stranger;
  Step step;
  step.attach(0, a.pid());
  step.attach(1, b.pid());
  CHECK(step.session.add_client(a.pid()) != 0);
  CHECK(step.session.add_client(stranger.pid()) == 0);
  CHECK(step.session.add_client(0) == 0);
}

TEST_CASE("the shell's phases belong to the task, whichever process marks them") {
  Task task, shell_a, shell_b;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t a = step.session.add_client(shell_a.pid());
  const std::uint32_t b = step.session.add_client(shell_b.pid());
  const auto mark = [&](std::uint32_t client, std::uint8_t type) {
    return step.writer.push({client, type, "load", static_cast<std::uint64_t>(monotonic_ns()), 0, 0,
                             SPHASE_DEPTH_UNKNOWN, SPHASE_FLAG_SHELL});
  };
  CHECK(mark(a, SPHASE_BEGIN));
  REQUIRE(step.is_drained());
  shell_a.end();
  step.session.look_for_ended_clients();
  CHECK(mark(b, SPHASE_END));
  REQUIRE(step.is_drained());
  step.take();
  CHECK(step.phase("load").shell);
  CHECK(flags_of(step.phase("load")) == 0);
  CHECK(step.phase("load").end_ns);
}

TEST_CASE("a marker held up by a writer that was killed is read soon, though nobody rings") {
  Task task;
  Step step(3'600'000);
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  REQUIRE(step.writer.claim());  // killed between claim and publication
  CHECK(step.mark(client, SPHASE_BEGIN, "behind"));
  CHECK(poll_until(
      [&] {
        step.take();
        return step.phase("behind").begin_ns != 0;
      },
      3000));
  CHECK(step.state.markers_invalid == 1);
}

TEST_CASE("a hot program: every accepted pair is counted, the rows stay few") {
  Task task;
  Step step;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  std::int64_t accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto now = static_cast<std::uint64_t>(monotonic_ns());
    const bool begun = step.writer.push({client, SPHASE_BEGIN, "hot", now, 0, 1, 0});
    const bool ended = step.writer.push({client, SPHASE_END, "hot", now, 0, 1, 0});
    if (!begun || !ended) std::this_thread::yield();
    accepted += (begun ? 1 : 0) + (ended ? 1 : 0);
  }
  REQUIRE(step.is_drained());
  step.session.finish("step ended");
  step.take();
  CHECK(step.state.markers == accepted);
  CHECK(step.state.markers_dropped == 400'000 - accepted);
  CHECK(step.phases.size() < 2'000);
}

TEST_CASE("threads that mark, come and go while rows are taken: nothing breaks") {
  Task task;
  Step step(10);
  step.attach(0, task.pid());
  std::atomic<std::int64_t> accepted{0};
  std::vector<std::thread> writers;
  for (std::uint32_t t = 1; t <= 4; ++t) {
    writers.emplace_back([&, t] {
      const std::uint32_t client = step.session.add_client(task.pid());
      for (int i = 0; i < 500; ++i) {
        const auto now = [] { return static_cast<std::uint64_t>(monotonic_ns()); };
        if (step.writer.push({client, SPHASE_BEGIN, "p", now(), 0, t})) ++accepted;
        if (step.writer.push({client, SPHASE_END, "p", now(), 0, t})) ++accepted;
        if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    step.take();
    step.session.look_for_ended_clients();
    step.session.notice("gap", "x");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& writer : writers) writer.join();
  step.session.finish("step ended");
  step.take();
  CHECK(step.state.markers == accepted);
  CHECK(step.notices.size() >= 20);
}

TEST_CASE("the store thread puts a whole step into node.db") {
  const TempFolder folder;
  sphase_link_start start = start_of();
  start.start_ns = static_cast<std::uint64_t>(epoch_ns());
  start.job_id = 5;
  start.max_bytes = 64 << 20;
  std::snprintf(start.node_db, sizeof(start.node_db), "%s", (folder / "n/node.db").c_str());
  std::snprintf(start.run_dir, sizeof(start.run_dir), "%s", folder.path().c_str());
  Task task;
  Step step;
  std::atomic<bool> stored{false};
  {
    StoreThread store(start, step.session);
    step.attach(0, task.pid());
    CHECK(poll_until([&] { return access(start.node_db, F_OK) == 0; }));
    step.exit(0, task.pid());
    step.session.finish("step ended");
    store.finish([&] { stored = true; });
    CHECK(poll_until([&] { return stored.load(); }));
  }
  auto db = Database::open(start.node_db, Database::Mode::kReadOnly);
  REQUIRE(db);
  auto query = db->prepare(
      "SELECT end_reason, (SELECT count(*) FROM sample), (SELECT count(*) FROM task) FROM run");
  REQUIRE(query);
  REQUIRE(query->step());
  CHECK(query->text(0) == "step ended");
  CHECK(query->integer(1) == 2);
  CHECK(query->integer(2) == 1);
}

TEST_CASE("a quiet run is stored rarely, and soon after something began") {
  const TempFolder folder;
  sphase_link_start start = start_of();
  start.max_bytes = 64 << 20;
  std::snprintf(start.node_db, sizeof(start.node_db), "%s", (folder / "n/node.db").c_str());
  std::snprintf(start.run_dir, sizeof(start.run_dir), "%s", folder.path().c_str());
  Task task;
  Step step(20);  // 50 samples a second
  StoreThread store(start, step.session);
  REQUIRE(poll_until([&] { return access(start.node_db, F_OK) == 0; }));
  const auto stored = [&] {
    auto db = Database::open(start.node_db, Database::Mode::kReadOnly);
    auto query = db->prepare("SELECT count(*) FROM sample");
    return query && query->step() ? query->integer(0) : 0;
  };
  step.attach(0, task.pid());
  store.soon();
  REQUIRE(poll_until([&] { return stored() > 0; }));
  const std::int64_t first = stored();
  usleep(2 * StoreThread::kCommitMs * 1000);  // far less than kQuietMs
  CHECK(stored() == first);
  const std::int64_t asked_ns = monotonic_ns();
  store.soon();
  CHECK(poll_until([&] { return stored() > first; }));
  CHECK(monotonic_ns() - asked_ns < 2'000'000'000);
}

TEST_CASE("a store that never could write leaves a note that says why") {
  const TempFolder folder;
  sphase_link_start start = start_of();
  start.job_id = 5;
  start.max_bytes = 64 << 20;
  folder.write("file", "");
  std::snprintf(start.node, sizeof(start.node), "n1");
  std::snprintf(start.node_db, sizeof(start.node_db), "%s", (folder / "file/node.db").c_str());
  std::snprintf(start.run_dir, sizeof(start.run_dir), "%s", folder.path().c_str());
  Step step;
  {
    StoreThread store(start, step.session);
    store.finish([] {});
  }
  const auto notes = names_in(folder / "notes");
  REQUIRE(notes.size() == 1);
  const std::string text = text_of(folder / "notes/" + notes[0]);
  CHECK(text.find("code=store-failed") != std::string::npos);
  CHECK(text.find("job_id=5") != std::string::npos);
}
