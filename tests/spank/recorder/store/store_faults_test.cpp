// Files that are held, full, damaged or gone; and the notes of earlier steps.
#include <doctest/doctest.h>

#include "common/clock.h"
#include "common/note.h"
#include "common/vocabulary.h"
#include "tests/spank/recorder/store/store_harness.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a commit that fails because the file is held is tried again without loss") {
  Place place;
  RunStore store(place.start);
  must(store.commit(state()));
  {
    Database other = place.db();
    auto held = Transaction::begin(other);
    REQUIRE(held);
    store.add(samples(3));
    CHECK_FALSE(store.commit(state()));
    CHECK(store.anything_waits());
  }
  store.add(samples(2, 100));
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM sample") == 5);
  CHECK(store.samples_dropped() == 0);
}

TEST_CASE("a store that cannot be opened is tried again until it can") {
  Place place;
  place.folder.write("db", "a file where the folder should be");
  RunStore store(place.start);
  store.add(samples(3));
  const auto failed = store.commit(state());
  REQUIRE_FALSE(failed);
  CHECK(failed.error() != "");
  std::filesystem::remove(place.folder / "db");
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM sample") == 3);
}

TEST_CASE("rows beyond what may wait are dropped and counted, notices and tasks are kept") {
  Place place;
  RunStore store(place.start);
  const int most = static_cast<int>(RunStore::kMaxPending);
  store.add(samples(most));
  Batch more = samples(10, most + 1);
  more.tasks.emplace_back();
  more.notices.push_back({1, "gap", "x"});
  for (int i = 0; i < 5; ++i) more.attributes.push_back({0, "", std::to_string(i), "v"});
  store.add(std::move(more));
  CHECK(store.samples_dropped() == 15);
  must(store.commit(state()));
  CHECK(place.number("SELECT sum(rows) FROM segment") == most);
  CHECK(place.number("SELECT samples_dropped FROM run") == 15);
  CHECK(place.number("SELECT count(*) FROM task") == 1);
  CHECK(place.number("SELECT count(*) FROM notice") == 1);
}

TEST_CASE("at the cap the oldest runs make room for this one") {
  Place place;
  place.start.max_bytes = 1 << 20;
  constexpr int kRows = 8'000;  // 20 B and more each, however well they are packed
  for (std::uint64_t job = 1; job <= 8; ++job) {
    sphase_link_start old = place.start;
    old.start_ns = job;
    RunStore store(old);
    store.add(noisy_samples(kRows));
    RunState ended = state();
    ended.end_ns = static_cast<std::int64_t>(job) + 1;
    must(store.commit(ended));
  }
  RunStore store(place.start);
  store.add(noisy_samples(kRows));
  must(store.commit(state()));
  CHECK(store.samples_dropped() == 0);
  CHECK(place.number(
            "SELECT sum(rows) FROM segment JOIN run USING (run_id) WHERE end_ns IS NULL") == kRows);
  const auto deleted =
      place.number("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rows_deleted'");
  CHECK(deleted >= kRows);
  CHECK(deleted % kRows == 0);  // rows, not segments
  CHECK(place.number("SELECT sum(rows) FROM segment") == 9 * kRows - deleted);
  CHECK(std::filesystem::file_size(place.path()) <= place.start.max_bytes);
}

TEST_CASE("at the cap with nothing old to give up, samples go and everything else stays") {
  Place place;
  place.start.max_bytes = 256 << 10;
  RunStore store(place.start);
  Batch batch;
  PhaseRow phase;
  phase.path = "a";
  phase.number = 1;
  batch.phases.push_back(phase);
  store.add(std::move(batch));
  store.add(samples(20'000));
  must(store.commit(state()));
  CHECK(store.samples_dropped() == 20'000);
  must(store.commit(state()));  // which tells the run's row
  CHECK(place.number("SELECT samples_dropped FROM run") == 20'000);
  CHECK(place.number("SELECT count(*) FROM phase") == 1);
}

TEST_CASE("a run that has written its share keeps its tasks and periodic samples, and says so") {
  Place place;
  place.start.max_bytes = 1 << 20;
  RunStore store(place.start);
  const std::string text(1000, 'x');
  for (int second = 0; second < 3; ++second) {
    Batch batch = samples(10, 1 + second * 100);
    batch.samples[0].kind = "edge";
    batch.tasks.emplace_back();
    for (int i = 0; i < 100; ++i) {
      batch.attributes.push_back({0, "", std::to_string(second * 100 + i), text});
    }
    store.add(std::move(batch));
  }
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM attribute") == 100);
  CHECK(place.number("SELECT count(*) FROM sample WHERE kind = 'tick'") == 27);
  CHECK(place.number("SELECT count(*) FROM sample WHERE kind = 'edge'") == 1);
  CHECK(place.number("SELECT count(*) FROM notice WHERE code = 'limit'") == 1);
  CHECK(place.number("SELECT samples_dropped FROM run") == 202);
}

TEST_CASE("a restart count that is known only later replaces the one of the start") {
  Place place;
  RunStore store(place.start);
  must(store.commit(state()));
  RunState later = state();
  later.restart_count = 3;
  must(store.commit(later));
  CHECK(place.number("SELECT restart_count FROM run") == 3);
}

TEST_CASE("a file damaged while it is open is replaced, with a notice and the run's rows") {
  Place place;
  RunStore store(place.start);
  store.add(samples(3000));
  must(store.commit(state()));
  damage(place.path());
  store.add(samples(3, 10'000));
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM run") == 1);
  CHECK(place.number("SELECT count(*) FROM sample") == 3);
  CHECK(place.number("SELECT count(*) FROM notice WHERE code = 'store-replaced'") == 1);
  int aside = 0;
  for (const std::string& name : names_in(place.folder / "db")) {
    aside += name.find("node.db.damaged-") == 0 ? 1 : 0;
  }
  CHECK(aside >= 1);
}

TEST_CASE("a file that was deleted or replaced under us is made anew, with the run in it") {
  Place place;
  RunStore store(place.start);
  must(store.commit(state()));
  for (const char* file : {"", "-wal", "-shm"}) std::filesystem::remove(place.path() + file);
  store.add(samples(3));
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM run") == 1);
  CHECK(place.number("SELECT count(*) FROM sample") == 3);
}

TEST_CASE("a damaged file found at the start is told in the run's notices") {
  Place place;
  place.folder.write("db/node.db", std::string(8192, 'x'));
  RunStore store(place.start);
  must(store.commit(state()));
  CHECK(place.text("SELECT text FROM notice WHERE code = 'store-replaced'").find("damaged-") !=
        std::string::npos);
}

TEST_CASE("notes of earlier steps on this node are imported once, and those of others stay") {
  Place place;
  const std::string run_dir = place.folder / "run";
  const auto leave = [&](const char* node, std::uint32_t job) {
    const sphase_note note{"c1", job, 0, "0", node, "not-active", "why"};
    REQUIRE(sphase_note_write(run_dir.c_str(), &note) == 0);
  };
  leave("n1", 7);
  leave("n1", 8);
  leave("n2", 9);
  {
    RunStore store(place.start);
    must(store.commit(state()));
    must(store.commit(state()));
  }
  CHECK(place.number("SELECT count(*) FROM notice WHERE run_id IS NULL") == 2);
  CHECK(place.number("SELECT count(*) FROM notice WHERE job_id = 7 AND code = 'not-active'") == 1);
  CHECK(names_in(run_dir + "/notes").size() == 1);
  sphase_link_start next = place.start;
  next.start_ns += 1;
  RunStore store(next);
  must(store.commit(state()));
  CHECK(place.number("SELECT count(*) FROM notice WHERE run_id IS NULL") == 2);
}

TEST_CASE("a note is not deleted before it is stored") {
  Place place;
  const sphase_note note{"c1", 7, 0, "0", "n1", "not-active", "why"};
  REQUIRE(sphase_note_write((place.folder / "run").c_str(), &note) == 0);
  place.folder.write("db", "in the way");
  RunStore store(place.start);
  CHECK_FALSE(store.commit(state()));
  CHECK(names_in(place.folder / "run/notes").size() == 1);
}

TEST_CASE("on a full disk the commit fails, and goes through once there is room (needs root)") {
  Place place;
  const SmallDisk disk(place.folder / "db", "400k");
  if (!disk) {
    MESSAGE("skipped: only root can mount a small tmpfs");
    return;
  }
  std::snprintf(place.start.node_db, sizeof(place.start.node_db), "%s/node.db",
                disk.path().c_str());
  RunStore store(place.start);
  must(store.commit(state()));
  { std::ofstream(disk.path() + "/fill") << std::string(1 << 20, 'x'); }
  Batch batch;
  for (int i = 0; i < 5000; ++i) batch.attributes.push_back({0, "", std::to_string(i), "v"});
  store.add(std::move(batch));
  const auto failed = store.commit(state());
  CHECK_FALSE(failed);
  std::filesystem::remove(disk.path() + "/fill");
  const auto done = store.commit(state());
  CHECK_MESSAGE(done, (done ? "" : done.error()));
  CHECK(place.number("SELECT count(*) FROM attribute") > 0);
}
