// What is sealed and when, and that no row is lost or doubled by it.
#include "spank/recorder/store/seal.h"

#include <doctest/doctest.h>

#include "common/segment.h"
#include "tests/spank/recorder/store/store_harness.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000'000;

RunState at(std::int64_t now_ns) {
  RunState out;
  out.last_ns = now_ns;
  return out;
}

RunState ended(std::int64_t now_ns) {
  RunState out = at(now_ns);
  out.end_ns = now_ns;
  return out;
}

/// Instances 1, 2, … of a path, each of 1 ms, the last one ended at `last_end_ns`.
Batch phases(int count, std::int64_t last_end_ns, std::int64_t first_number = 1) {
  Batch batch;
  for (int i = 0; i < count; ++i) {
    PhaseRow row;
    row.path = "solve";
    row.number = first_number + i;
    row.begin_ns = last_end_ns - (count - i) * 1'000'000;
    row.end_ns = row.begin_ns + 1'000'000;
    row.wall_ns = 1'000'000;
    batch.phases.push_back(row);
  }
  return batch;
}

void commit(RunStore& store, Batch batch, const RunState& state) {
  store.add(std::move(batch));
  must(store.commit(state));
}

std::int64_t raw(const Place& place, const std::string& table) {
  return place.number("SELECT count(*) FROM " + table);
}

std::int64_t sealed(const Place& place, const std::string& table) {
  return place.number("SELECT coalesce(sum(rows), 0) FROM segment WHERE source = '" + table + "'");
}

/// The rows of the first segment of a table.
Segment first_segment(const Place& place, const std::string& table) {
  auto segment = decode_segment(
      place.text("SELECT data FROM segment WHERE source = '" + table + "' ORDER BY segment_id"));
  REQUIRE_MESSAGE(segment, (segment ? "" : segment.error()));
  return std::move(*segment);
}

constexpr int kWorth = static_cast<int>(Sealer::kWorth);

}  // namespace

TEST_CASE("samples stay raw until there are enough of them, then they are sealed") {
  Place place;
  RunStore store(place.start);
  commit(store, samples(kWorth - 1), at(kNow));
  CHECK(raw(place, "sample") == kWorth - 1);
  CHECK(raw(place, "segment") == 0);
  commit(store, samples(1, kWorth), at(kNow));
  CHECK(raw(place, "sample") == 0);
  CHECK(sealed(place, "sample") == kWorth);
  CHECK(place.number("SELECT sealed_ns FROM segment") == kNow);
  commit(store, samples(3, 10'000), at(kNow));
  CHECK(raw(place, "sample") == 3);
}

TEST_CASE("a segment has all columns of its table but run_id, with their NULLs") {
  Place place;
  RunStore store(place.start);
  Batch batch = samples(kWorth);
  batch.samples[7].cpu_time_ns = 0;
  batch.samples[7].kind = "edge";
  batch.samples[7].io = Io{1, 2, 3, 4};
  commit(store, std::move(batch), at(kNow));
  const Segment segment = first_segment(place, "sample");
  std::string names;
  for (const SegmentColumn& column : segment.columns) names += column.name() + " ";
  CHECK(names ==
        "time_ns kind cpu_time_ns memory_current_bytes memory_anon_bytes memory_file_bytes "
        "memory_shmem_bytes memory_kernel_bytes memory_peak_bytes io_read_bytes io_write_bytes "
        "io_read_call_bytes io_write_call_bytes processes ");
  CHECK(segment.columns[0].integer(7) == 8);
  CHECK(segment.columns[1].text(7) == "edge");
  CHECK(segment.columns[1].text(8) == "tick");
  CHECK_FALSE(segment.columns[2].is_null(7));
  CHECK(segment.columns[2].integer(7) == 0);
  CHECK(segment.columns[2].is_null(8));
  CHECK(segment.columns[12].integer(7) == 4);
}

TEST_CASE("at the end of a run what is left is sealed, if it is worth it") {
  for (const int rows : {1, static_cast<int>(Sealer::kWorthAtEnd), 100}) {
    CAPTURE(rows);
    Place place;
    RunStore store(place.start);
    commit(store, samples(rows), at(kNow));
    Batch batch = phases(rows, kNow);  // ended just now, and final all the same
    commit(store, std::move(batch), ended(kNow));
    const bool worth = rows >= Sealer::kWorthAtEnd;
    CHECK(sealed(place, "sample") == (worth ? rows : 0));
    CHECK(raw(place, "sample") == (worth ? 0 : rows));
    CHECK(sealed(place, "phase") == (worth ? rows : 0));
    CHECK(raw(place, "phase") == (worth ? 0 : rows));
  }
}

TEST_CASE("a backlog becomes several segments, of which none is too large") {
  Place place;
  RunStore store(place.start);
  commit(store, samples(10'000), at(kNow));
  CHECK(sealed(place, "sample") == 10'000);
  CHECK(raw(place, "segment") == 3);
  CHECK(place.number("SELECT max(rows) FROM segment") == Sealer::kMostRows);
  CHECK(place.number("SELECT count(DISTINCT sealed_ns) FROM segment") == 3);
}

TEST_CASE("a phase is sealed once it has settled, and an open one never while the run goes on") {
  Place place;
  RunStore store(place.start);
  Batch batch = phases(2 * kWorth, kNow);
  PhaseRow open;
  open.path = "outer";
  open.number = 1;
  open.begin_ns = kNow - 1'000'000'000;
  batch.phases.push_back(open);
  commit(store, std::move(batch), at(kNow));
  CHECK(sealed(place, "phase") == 0);
  CHECK(raw(place, "phase") == 2 * kWorth + 1);

  commit(store, {}, at(kNow + Sealer::kSettledNs - 1'000'000 * 100 + 1));
  CHECK(sealed(place, "phase") == 2 * kWorth - 100);
  commit(store, {}, ended(kNow + Sealer::kSettledNs));
  CHECK(sealed(place, "phase") == 2 * kWorth + 1);
  CHECK(raw(place, "phase") == 0);
}

TEST_CASE(
    "a phase that is reopened after it was sealed is raw again, and sealed again at the end") {
  Place place;
  RunStore store(place.start);
  commit(store, phases(kWorth, kNow), at(kNow + Sealer::kSettledNs + 1));
  REQUIRE(sealed(place, "phase") == kWorth);
  Batch again = phases(20, kNow + Sealer::kSettledNs, kWorth - 19);
  again.phases.back().threads = 2;
  commit(store, std::move(again), at(kNow + Sealer::kSettledNs + 2));
  CHECK(raw(place, "phase") == 20);
  CHECK(place.number("SELECT max(threads) FROM phase") == 2);
  commit(store, {}, ended(kNow + Sealer::kSettledNs + 3));
  CHECK(raw(place, "phase") == 0);
  CHECK(place.number("SELECT rows FROM segment ORDER BY segment_id DESC LIMIT 1") == 20);
}

TEST_CASE("counters are sealed after their phase, those of the whole task at the end") {
  Place place;
  RunStore store(place.start);
  must(store.commit(at(kNow)));
  const auto counter = [&](const std::string& path, int number) {
    Database db = place.db();
    must(db.exec("INSERT INTO counter VALUES (1, 'task', 0, '" + path + "', " +
                 std::to_string(number) + ", 'PAPI_TOT_INS', 5, NULL, NULL)"));
  };
  {
    Database db = place.db();
    must(db.exec("BEGIN"));
    for (int i = 1; i <= kWorth + 1; ++i) {
      must(db.exec("INSERT INTO counter VALUES (1, 'task', 0, 'solve', " + std::to_string(i) +
                   ", 'PAPI_TOT_INS', " + std::to_string(i * i) + ", NULL, NULL)"));
    }
    must(db.exec("COMMIT"));
  }
  counter("", 0);
  Batch batch = phases(kWorth, kNow - Sealer::kSettledNs - 1);
  batch.phases.push_back(phases(1, kNow, kWorth + 1).phases[0]);  // not settled
  commit(store, std::move(batch), at(kNow));
  CHECK(sealed(place, "phase") == kWorth);
  CHECK(sealed(place, "counter") == kWorth);
  CHECK(raw(place, "counter") == 2);
  const Segment segment = first_segment(place, "counter");
  CHECK(segment.columns[5].name() == "value");
  CHECK(segment.columns[5].integer(kWorth - 1) == std::int64_t{kWorth} * kWorth);
  CHECK(segment.columns[6].is_null(0));
}

TEST_CASE("sealing that fails leaves the rows as they are, and is tried again later") {
  Place place;
  RunStore store(place.start);
  must(store.commit(at(kNow)));
  must(
      place.db().exec("CREATE TRIGGER broken BEFORE INSERT ON segment BEGIN"
                      " SELECT raise(ABORT, 'not now'); END"));
  commit(store, samples(kWorth), at(kNow));
  CHECK(raw(place, "sample") == kWorth);
  CHECK(sealed(place, "sample") == 0);
  must(place.db().exec("DROP TRIGGER broken"));
  must(store.commit(at(kNow + Sealer::kPauseNs - 1)));
  CHECK(raw(place, "sample") == kWorth);
  must(store.commit(at(kNow + Sealer::kPauseNs)));
  CHECK(raw(place, "sample") == 0);
  CHECK(sealed(place, "sample") == kWorth);
}

TEST_CASE("sealing that fails again and again is told in a notice, once") {
  Place place;
  RunStore store(place.start);
  must(store.commit(at(kNow)));
  must(
      place.db().exec("CREATE TRIGGER broken BEFORE INSERT ON segment BEGIN"
                      " SELECT raise(ABORT, 'not now'); END"));
  for (int i = 0; i < 6; ++i) {
    commit(store, samples(kWorth, 1 + i * 10'000), at(kNow + i * Sealer::kPauseNs));
  }
  CHECK(raw(place, "sample") == 6 * kWorth);
  CHECK(place.number("SELECT count(*) FROM notice WHERE code = 'store-failed'") == 1);
  CHECK(place.text("SELECT text FROM notice").find("not now") != std::string::npos);
}

TEST_CASE("a recorder that dies between deleting and sealing has lost nothing") {
  Place place;
  const int code = in_child([&] {
    RunStore store(place.start);
    store.add(samples(kWorth - 1));
    if (!store.commit(at(kNow))) return 1;
    Database db = place.db();
    // The process ends when the segment is about to be written: the rows are deleted by then.
    sqlite3_create_function(
        db.raw(), "die", 0, SQLITE_UTF8, nullptr,
        [](sqlite3_context*, int, sqlite3_value**) { _exit(77); }, nullptr, nullptr);
    if (!db.exec("CREATE TEMP TRIGGER dying BEFORE INSERT ON main.segment BEGIN SELECT die(); END"))
      return 2;
    Sealer sealer;
    (void)static_cast<bool>(sealer.seal(db, {1, true, kNow}));
    return 3;
  });
  REQUIRE(code == 77);
  CHECK(raw(place, "sample") == kWorth - 1);
  CHECK(raw(place, "segment") == 0);
}

TEST_CASE("rows are sealed at the cap too, since that makes room") {
  Place place;
  place.start.max_bytes = 160 << 10;
  RunStore store(place.start);
  for (int second = 0; second < 60; ++second) {
    commit(store, samples(200, 1 + second * 1000), at(kNow + second));
  }
  CHECK(store.samples_dropped() == 0);
  CHECK(raw(place, "sample") + sealed(place, "sample") == 60 * 200);
  CHECK(std::filesystem::file_size(place.path()) <= place.start.max_bytes);
}

TEST_CASE("long paths make short segments") {
  Place place;
  RunStore store(place.start);
  Batch batch;
  for (int i = 0; i < 3000; ++i) {
    PhaseRow row = phases(1, kNow - Sealer::kSettledNs - 1).phases[0];
    row.path = std::to_string(10'000 + i) + std::string(2'500, 'x');
    batch.phases.push_back(row);
  }
  commit(store, std::move(batch), ended(kNow));
  CHECK(sealed(place, "phase") == 3000);
  CHECK(place.number("SELECT max(rows) FROM segment") < 500);
}
