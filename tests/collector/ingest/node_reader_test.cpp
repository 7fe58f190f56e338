#include "collector/ingest/node_reader.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/collector/ingest/node_file.h"
#include "tests/collector/segments.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

struct Fixture {
  TempFolder folder;
  NodeFile node{folder / "n1/node.db"};
  Database& db = node.db();

  /// A run with a sample, a value, a phase, a counter, a task, an attribute and a notice at 0, 10
  /// and 20 s, last seen at 20 s.
  std::int64_t run_with_rows() {
    const std::int64_t run = node.add(123);
    const std::string id = std::to_string(run);
    for (int i = 0; i < 3; ++i) {
      const double time_s = 10.0 * i;
      add_sample(db, run, time_s, 1, 2);
      add_value(db, run, time_s, "v");
      add_phase(db, run, {.path = "p", .begin_s = time_s, .end_s = time_s, .number = i + 1});
      add_counter(db, run, {.path = "p", .number = i + 1});
      run_sql(db, "INSERT INTO task(run_id, task, start_ns, end_ns) VALUES(" + id + "," +
                      std::to_string(i) + "," + std::to_string(at(time_s)) + "," +
                      std::to_string(at(time_s)) + ")");
      run_sql(db, "INSERT INTO notice VALUES(" + id + ",'c1',123,0,'0','n1'," +
                      std::to_string(at(time_s)) + ",'limit','text')");
    }
    run_sql(db, "INSERT INTO attribute VALUES(" + id + ",0,'','k','v')");
    node.commit(run, 20);
    return run;
  }
};

RunSeen seen_at(double last_s) {
  RunSeen seen;
  seen.known = true;
  seen.last_ns = at(last_s);
  return seen;
}

const std::vector<std::string> kChildren = {"task",  "sample",  "phase",
                                            "value", "counter", "notice"};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "of a run that nobody knows all rows are read") {
  run_with_rows();
  const auto all = shipments(db);
  REQUIRE(all.size() == 1);
  for (const auto& table : kChildren) CHECK_MESSAGE(raw_rows(all, table) == 3, table);
  CHECK(raw_rows(all, "attribute") == 1);
  REQUIRE(all[0].runs.rows() == 1);
  CHECK(run_name(all[0].runs, 0) == RunName{"c1", "0", "n1", 123, 0, at(0)});
  CHECK(all[0].runs.find("run_id") == nullptr);
  CHECK(all[0].runs.find("change") == nullptr);
}

TEST_CASE_FIXTURE(Fixture,
                  "of a run that is known only the rows since then are read, and some more") {
  run_with_rows();
  for (const auto& [last_s, rows] : {std::pair{10.0, 2}, {12.0, 2}, {12.1, 1}, {20.0, 1}}) {
    CAPTURE(last_s);
    const auto all = shipments(db, seen_at(last_s));
    for (const auto& table : kChildren) {
      CHECK_MESSAGE(raw_rows(all, table) == static_cast<std::size_t>(rows), table);
    }
    CHECK(raw_rows(all, "attribute") == 1);  // they have no time
  }
}

TEST_CASE_FIXTURE(Fixture, "a phase or a task that has not ended is always read") {
  const std::int64_t run = run_with_rows();
  add_phase(db, run, {.path = "open", .begin_s = 1});
  run_sql(db, "INSERT INTO task(run_id, task) VALUES(" + std::to_string(run) + ", 9)");
  const auto all = shipments(db, seen_at(20));
  CHECK(raw_rows(all, "phase") == 2);
  CHECK(raw_rows(all, "task") == 2);
}

TEST_CASE_FIXTURE(Fixture, "a run that ended is swept once more, and then not again") {
  const std::int64_t run = run_with_rows();
  node.end(run, 30);
  const auto all = shipments(db, seen_at(20));
  for (const auto& table : kChildren) CHECK_MESSAGE(raw_rows(all, table) == 3, table);
  RunSeen seen = seen_at(30);
  seen.end_ns = at(30);
  for (const auto& table : kChildren) CHECK(raw_rows(shipments(db, seen), table) == 0);
  seen.end_ns = at(29);  // of another end
  CHECK(raw_rows(shipments(db, seen), "sample") == 3);
}

TEST_CASE_FIXTURE(Fixture, "of a run that the receiver has newer all rows are read: it is a copy") {
  run_with_rows();
  CHECK(raw_rows(shipments(db, seen_at(21)), "sample") == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "only segments that are newer than those that the receiver has are read") {
  const std::int64_t run = node.add(123);
  for (int part = 0; part < 3; ++part) {
    run_sql(db, "BEGIN");
    for (int i = 0; i < 600; ++i) add_sample(db, run, part * 1000 + i, i, i);
    run_sql(db, "COMMIT");
    node.commit(run, part * 1000 + 600);
    node.seal(run, part * 1000 + 601);
  }
  auto all = shipments(db);
  REQUIRE(segments(all) == 3);
  CHECK(all[0].sealed[0].sealed_ns < all[0].sealed[1].sealed_ns);
  RunSeen seen = seen_at(2600);
  seen.sealed_ns[0] = all[0].sealed[1].sealed_ns;
  CHECK(segments(shipments(db, seen)) == 1);
  seen.sealed_ns[0] = all[0].sealed[2].sealed_ns;
  CHECK(segments(shipments(db, seen)) == 0);
  seen.sealed_ns = {-1, at(9999), at(9999)};  // of other tables
  CHECK(segments(shipments(db, seen)) == 3);
}

TEST_CASE_FIXTURE(Fixture, "a run of many rows comes in several shipments, each row once") {
  const std::int64_t run = node.add(123);
  const std::size_t count = 2 * kShipmentRows + 100;
  run_sql(db, "BEGIN");
  for (std::size_t i = 0; i < count; ++i) {
    add_value(db, run, static_cast<double>(i), "v" + std::to_string(i));
  }
  add_sample(db, run, 1, 1, 1);
  run_sql(db, "COMMIT");
  node.end(run, 9000);
  const auto all = shipments(db);
  CHECK(all.size() >= 3);
  std::set<std::string> names;
  for (const auto& shipment : all) {
    for (const auto& raw : shipment.raw) {
      CHECK(raw.rows.rows() <= kShipmentRows);
      if (raw.table != "value") continue;
      const auto* name = raw.rows.find("name");
      for (std::size_t row = 0; row < raw.rows.rows(); ++row) names.insert(name->text(row));
    }
  }
  CHECK(names.size() == count);
  CHECK(raw_rows(all, "value") == count);
  CHECK(raw_rows(all, "sample") == 1);
}

TEST_CASE_FIXTURE(Fixture, "exactly as many rows as a shipment holds are not read twice") {
  const std::int64_t run = node.add(123);
  run_sql(db, "BEGIN");
  for (std::size_t i = 0; i < kShipmentRows; ++i) add_value(db, run, static_cast<double>(i), "v");
  run_sql(db, "COMMIT");
  CHECK(raw_rows(shipments(db), "value") == kShipmentRows);
}

TEST_CASE_FIXTURE(Fixture,
                  "until its last shipment a run is told to be no further than it was known") {
  const std::int64_t run = node.add(123);
  run_sql(db, "BEGIN");
  for (std::size_t i = 0; i < 2 * kShipmentRows; ++i) {
    add_value(db, run, 50 + static_cast<double>(i) / 1e6, "v" + std::to_string(i));
  }
  run_sql(db, "COMMIT");
  node.end(run, 100);
  const auto cells = [](const Shipment& shipment) {
    return cell(*shipment.runs.find("last_ns"), 0) + " " + cell(*shipment.runs.find("end_ns"), 0);
  };
  const std::string over = std::to_string(at(100)) + " " + std::to_string(at(100));
  for (const bool known : {false, true}) {
    const auto all = known ? shipments(db, seen_at(40)) : shipments(db);
    REQUIRE(all.size() == 3);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(cells(all[i]) == (known ? std::to_string(at(40)) + " NULL" : "NULL NULL"));
      CHECK(all[i].change < node.change());
    }
    CHECK(cells(all[2]) == over);
    CHECK(all[2].change == node.change());
  }
  // Of an older copy each shipment says that it is one.
  RunSeen newer = seen_at(200);
  for (const auto& shipment : shipments(db, newer)) CHECK(cells(shipment) == over);
}

TEST_CASE_FIXTURE(Fixture, "long texts fill a shipment before its rows do") {
  const std::int64_t run = node.add(123);
  run_sql(db, "BEGIN");
  for (int i = 0; i < 4000; ++i) {
    add_phase(db, run, {.path = std::string(2500, 'x') + std::to_string(i), .end_s = 1});
    run_sql(db, "INSERT INTO notice VALUES(NULL,'c1',5,0,'0','n1'," + std::to_string(i) +
                    ",'c',printf('%2500d'," + std::to_string(i) + "))");
  }
  run_sql(db, "COMMIT");
  const auto all = shipments(db);
  CHECK(raw_rows(all, "phase") == 4000);
  CHECK(raw_rows(all, "notice") == 4000);
  for (const auto& shipment : all) {
    for (const auto& raw : shipment.raw) CHECK(encode_segment(raw.rows));
  }
}

TEST_CASE_FIXTURE(Fixture, "many runs come in shipments of as many as one holds") {
  run_sql(db, "BEGIN");
  for (int i = 0; i < 600; ++i) add_sample(db, node.add(i, i), i, 1, 1);
  run_sql(db, "COMMIT");
  const auto all = shipments(db);
  REQUIRE(all.size() == 3);
  CHECK(all[0].runs.rows() == kShipmentRuns);
  CHECK(all[2].runs.rows() == 600 - 2 * kShipmentRuns);
  CHECK(raw_rows(all, "sample") == 600);
  CHECK(all[0].change < all[1].change);
  CHECK(all[2].change == node.change());
}

TEST_CASE_FIXTURE(Fixture,
                  "runs that did not change since are left out, and how far it told is said") {
  node.add(1);
  const std::int64_t change = node.change();
  CHECK(shipments(db, {}, change)[0].empty());
  CHECK(shipments(db, {}, change)[0].change == change);
  node.add(2);
  const auto all = shipments(db, {}, change);
  REQUIRE(all[0].runs.rows() == 1);
  CHECK(run_name(all[0].runs, 0)->job_id == 2);
  CHECK(all[0].change == change + 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "notices of no run come first, those that are known aside, however many") {
  const std::size_t count = kShipmentRows + 10;
  run_sql(db, "BEGIN");
  for (std::size_t i = 0; i < count; ++i) {
    add_notice(db, "n1", "not-active", "why", "0", 123, static_cast<double>(i));
  }
  run_sql(db, "COMMIT");
  node.add(7);
  auto reader = must_prepare(db, -1, [](const RunName&) { return Result<RunSeen>(RunSeen()); });
  const auto all = read_all(reader);
  CHECK(raw_rows(all, "notice") == count);
  CHECK(all[0].raw[0].rows.columns[0].name() == "run");
  CHECK(all[0].raw[0].rows.columns[0].is_null(0));
  CHECK(all[0].raw[0].rows.find("run_id") == nullptr);
  CHECK(reader.last_notice() == static_cast<std::int64_t>(count));
  CHECK(raw_rows(shipments(db, {}, -1, reader.last_notice() - 3), "notice") == 3);
  CHECK(raw_rows(shipments(db, {}, -1, reader.last_notice()), "notice") == 0);
}

TEST_CASE_FIXTURE(Fixture, "of more than 200 attributes the rest is told at the end of the run") {
  const std::int64_t run = node.add(123);
  for (int i = 0; i < 201; ++i) {
    run_sql(db, "INSERT INTO attribute VALUES(" + std::to_string(run) + ",0,''," +
                    std::to_string(i) + ",'v')");
  }
  node.commit(run, 10);
  CHECK(raw_rows(shipments(db), "attribute") == 201);
  CHECK(raw_rows(shipments(db, seen_at(5)), "attribute") == 0);
  // Of a run that is known to its beginning the rest may never have arrived.
  CHECK(raw_rows(shipments(db, seen_at(0)), "attribute") == 201);
  node.end(run, 20);
  CHECK(raw_rows(shipments(db, seen_at(10)), "attribute") == 201);
}

TEST_CASE_FIXTURE(Fixture, "counters come with their phase, and after it once it is sealed") {
  const std::int64_t run = node.add(123);
  run_sql(db, "BEGIN");
  for (int i = 1; i <= 600; ++i) {
    add_phase(db, run, {.path = "p", .begin_s = i * 1.0, .end_s = i + 0.5, .number = i});
  }
  for (int i = 1; i <= 100; ++i) add_counter(db, run, {.path = "p", .number = i});
  run_sql(db, "COMMIT");
  node.commit(run, 601);
  CHECK(raw_rows(shipments(db, seen_at(601)), "counter") == 0);
  CHECK(raw_rows(shipments(db, seen_at(100)), "counter") == 3);
  node.seal(run, 700);
  const auto all = shipments(db, seen_at(601));
  REQUIRE(segments(all) == 1);
  CHECK(raw_rows(all, "counter") == 100);  // too few to be sealed themselves
}

TEST_CASE_FIXTURE(Fixture,
                  "of an older version what it has is read, and nothing is asked of the rest") {
  run_with_rows();
  run_sql(db,
          "DROP INDEX run_change; ALTER TABLE run DROP COLUMN change;"
          "DELETE FROM meta WHERE key IN ('id', 'change')");
  REQUIRE(db.set_user_version(2));
  auto all = shipments(db);
  CHECK(raw_rows(all, "sample") == 3);
  CHECK(raw_rows(all, "counter") == 3);
  CHECK(all[0].facts.id == "");
  CHECK(all[0].change == 0);
  run_sql(db, "DROP TABLE segment; DROP TABLE counter");
  REQUIRE(db.set_user_version(1));
  all = shipments(db);
  CHECK(raw_rows(all, "sample") == 3);
  CHECK(raw_rows(all, "counter") == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a value of another type than those before it becomes NULL, and is counted") {
  const std::int64_t run = node.add(123);
  for (int i = 0; i < 4; ++i) add_sample(db, run, i, i, i);
  run_sql(db, "UPDATE sample SET cpu_time_ns = 'many' WHERE time_ns = " + std::to_string(at(1)));
  run_sql(db, "UPDATE sample SET cpu_time_ns = x'00' WHERE time_ns = " + std::to_string(at(2)));
  auto reader = must_prepare(db, -1, [](const RunName&) { return Result<RunSeen>(RunSeen()); });
  const auto all = read_all(reader);
  CHECK(reader.values_refused() == 2);
  REQUIRE(all[0].raw.size() == 1);
  const Segment& samples = all[0].raw[0].rows;
  CHECK(samples.rows() == 4);
  const SegmentColumn* cpu = samples.find("cpu_time_ns");
  CHECK(cell(*cpu, 0) + cell(*cpu, 1) + cell(*cpu, 2) + cell(*cpu, 3) == "0NULLNULL3");
}

TEST_CASE_FIXTURE(Fixture, "a run whose name cannot be read is an error") {
  node.add(123);
  run_sql(db, "UPDATE run SET step = x'00'");
  auto reader = must_prepare(db, -1, [](const RunName&) { return Result<RunSeen>(RunSeen()); });
  const auto next = reader.next();
  REQUIRE_FALSE(next);
  CHECK(next.error().rfind("a run has no name", 0) == 0);
}

TEST_CASE_FIXTURE(Fixture, "a receiver that cannot answer ends the pass") {
  node.add(123);
  auto reader = must_prepare(db, -1, [](const RunName&) { return Result<RunSeen>(Error{"gone"}); });
  const auto next = reader.next();
  REQUIRE_FALSE(next);
  CHECK(next.error() == "gone");
}

TEST_CASE_FIXTURE(Fixture, "a segment that is larger than any is told without its bytes") {
  const std::int64_t run = node.add(123);
  run_sql(db, "INSERT INTO segment VALUES(1," + std::to_string(run) +
                  ",'sample',77,1,zeroblob(9000000))");
  run_sql(db, "INSERT INTO segment VALUES(2," + std::to_string(run) + ",'job',78,1,x'00')");
  const auto all = shipments(db);
  REQUIRE(segments(all) == 1);  // the other one is of no table that may be sealed
  CHECK(all[0].sealed[0].data == "");
}

TEST_CASE_FIXTURE(Fixture, "what a file says of itself is in each shipment") {
  run_sql(db, "INSERT INTO meta VALUES('rows_deleted', '17'), ('damaged', 'node.db.bad')");
  const auto facts = shipments(db)[0].facts;
  CHECK(facts.node == "n1");
  CHECK(facts.id.size() == 32);
  CHECK(facts.rows_deleted == "17");
  CHECK(facts.damaged == "node.db.bad");
  run_sql(db, "DELETE FROM meta");
  CHECK(shipments(db)[0].facts == NodeFacts());
  node.add(1);
  CHECK(shipments(db)[0].facts.node == "n1");  // of its run
}

TEST_CASE("a file that is no node.db is an error") {
  const TempFolder folder;
  auto db = Database::open(folder / "x.db", Database::Mode::kCreate);
  REQUIRE(db);
  CHECK_FALSE(NodeReader::prepare(db->raw(), -1,
                                  [](const RunName&) { return Result<RunSeen>(RunSeen()); }));
}
