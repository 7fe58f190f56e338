#include "collector/serve/writer.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"
#include "tests/collector/wire/some_shipment.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// As it comes off the wire.
Incoming shipped(std::uint64_t number, const Shipment& shipment, const std::string& node = "n1") {
  Incoming incoming;
  incoming.connection = 7;
  incoming.node = node;
  incoming.file_id = "id";
  incoming.reserved = 100 + number;
  const auto whole = body_of(ShipHead{number, {}}, shipment);
  REQUIRE_MESSAGE(whole, (whole ? "" : whole.error()));
  std::string_view rest = *whole;
  incoming.head = *parse_ship_head(rest);
  incoming.body = std::string(rest);
  return incoming;
}

Incoming alive(std::uint64_t number, const std::string& node = "n1") {
  Incoming incoming;
  incoming.node = node;
  incoming.file_id = "id";
  incoming.head.number = number;
  incoming.alive = true;
  return incoming;
}

/// A shipment of which the last part fails.
Shipment failing() {
  Shipment shipment = some_real_shipment();
  shipment.raw.push_back(of_first_run("task", {{repeated("of_no_table", 1, 1)}}));
  return shipment;
}

/// A writer into a database of its own, and what it told.
class Fixture {
 public:
  explicit Fixture(const std::string& where = "")
      : path_((where.empty() ? folder_.path() : where) + "/cluster.db") {
    auto started = Writer::start(
        path_,
        [this](const std::vector<Stored>& all) {
          const std::int64_t runs = count("run");  // by a connection of its own
          const std::lock_guard lock(mutex_);
          runs_when_told_ = runs;
          told_.insert(told_.end(), all.begin(), all.end());
        },
        [this](const std::string& line) {
          const std::lock_guard lock(mutex_);
          log_.push_back(line);
        });
    REQUIRE_MESSAGE(started, (started ? "" : started.error()));
    writer = std::move(*started);
  }

  std::int64_t number(const std::string& sql) const {
    auto db = Database::open(path_, Database::Mode::kReadOnly);
    if (!db) return -1;
    auto query = db->prepare(sql);
    return query && query->step() ? query->integer(0) : -1;
  }
  std::int64_t count(const std::string& from) const {
    return number("SELECT count(*) FROM " + from);
  }
  void change_schema(const std::string& sql) const {
    auto db = Database::open(path_, Database::Mode::kReadWrite);
    REQUIRE(db);
    run_sql(*db, sql);
  }
  /// All that was told, once there are so many words.
  std::vector<Stored> wait(std::size_t count) {
    const bool came = poll_until([&] {
      const std::lock_guard lock(mutex_);
      return told_.size() >= count;
    });
    const std::lock_guard lock(mutex_);
    REQUIRE(came);
    REQUIRE(told_.size() == count);
    return told_;
  }
  std::string problem(std::size_t count) { return wait(count).back().problem; }
  std::int64_t runs_when_told() const { return runs_when_told_; }
  const std::vector<std::string>& log() const { return log_; }
  const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
  std::mutex mutex_;
  std::vector<Stored> told_;
  std::vector<std::string> log_;
  std::int64_t runs_when_told_ = -1;

 public:
  std::unique_ptr<Writer> writer;  // ends before what it tells goes
};

const std::string kFailed = "the collector could not store it: ";

}  // namespace

TEST_CASE_FIXTURE(Fixture, "what is told to be stored is there for everybody") {
  Shipment shipment = some_real_shipment();
  shipment.change = 42;
  shipment.facts.rows_deleted = "17";
  shipment.facts.damaged = "node.db.bad";
  writer->put(shipped(3, shipment));
  const auto all = wait(1);
  CHECK(runs_when_told() == 2);
  CHECK(all[0].connection == 7);
  CHECK(all[0].number == 3);
  CHECK(all[0].reserved == 103);
  CHECK(all[0].problem == "");
  CHECK(count("segment") == 2);
  CHECK(count("shipper WHERE node = 'n1' AND file_id = 'id' AND change = 42 AND rows_deleted = 17"
              " AND damaged = 'node.db.bad'") == 1);
  const auto counts = writer->counts();
  CHECK(counts.shipments == 1);
  CHECK(counts.commits == 1);
  CHECK(counts.failed == 0);
  CHECK(counts.rows == 3 + 2 + 1 + 1 + 3 + 2);
}

TEST_CASE_FIXTURE(Fixture, "a shipment that cannot be stored holds up no other") {
  Incoming cut = shipped(2, some_real_shipment(), "n2");
  cut.body.pop_back();
  writer->put(shipped(1, some_real_shipment()));
  writer->put(std::move(cut));
  writer->put(shipped(3, failing(), "n3"));
  writer->put(shipped(4, some_real_shipment(), "n4"));
  const auto all = wait(4);
  CHECK(all[0].problem == "");
  CHECK(all[1].problem.rfind(kFailed + "what it shipped cannot be read: ", 0) == 0);
  CHECK(all[2].problem.rfind(kFailed, 0) == 0);
  CHECK(all[2].reserved == 103);
  CHECK(all[3].problem == "");
  CHECK(count("shipper") == 2);
  CHECK(writer->counts().failed == 2);
  REQUIRE(log().size() == 2);
  CHECK(log()[0].rfind("node n2: ", 0) == 0);
}

TEST_CASE_FIXTURE(Fixture, "of a shipment that fails in its midst nothing stays") {
  writer->put(shipped(1, failing()));
  CHECK(problem(1) != "");
  for (const char* table : {"run", "sample", "segment", "phase_path", "shipper"}) {
    CHECK_MESSAGE(count(table) == 0, table);
  }
  writer->put(shipped(2, some_real_shipment()));
  CHECK(problem(2) == "");
  CHECK(count("phase_path") == 1);  // not taken for noted
}

TEST_CASE_FIXTURE(Fixture, "a node that is alive is noted, and its change stays as it was") {
  Shipment shipment = some_real_shipment();
  shipment.change = 42;
  writer->put(shipped(1, shipment));
  writer->put(alive(2));
  writer->put(alive(3, "n2"));
  wait(3);
  CHECK(number("SELECT change FROM shipper WHERE node = 'n1'") == 42);
  CHECK(number("SELECT change FROM shipper WHERE node = 'n2'") == 0);
  CHECK(number("SELECT min(seen_ns) FROM shipper") > kStart);
}

TEST_CASE_FIXTURE(Fixture, "an older shipment takes no change back") {
  Shipment shipment = some_real_shipment();
  for (const std::int64_t change : {42, 7}) {
    shipment.change = change;
    writer->put(shipped(1, shipment));
  }
  wait(2);
  auto db = open_for_serving(path());
  REQUIRE(db);
  CHECK(*stored_change(*db, "n1", "id") == 42);
  CHECK(*stored_change(*db, "n1", "other") == 0);
  CHECK(*stored_change(*db, "n2", "id") == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a clock is noted once, and again when it moved by more than is not sure") {
  std::size_t words = 0;
  const auto say = [&](std::int64_t offset_ns, std::int64_t band_ns) {
    Incoming incoming = alive(1);
    incoming.head.clock = ClockOffset{offset_ns, band_ns};
    writer->put(std::move(incoming));
    wait(++words);
    return count("node_clock");
  };
  CHECK(say(1000, 100) == 1);
  CHECK(say(1200, 100) == 1);
  CHECK(say(1201, 100) == 2);
  CHECK(say(1201, 5000) == 2);
  CHECK(number("SELECT offset_ns FROM node_clock ORDER BY time_ns DESC LIMIT 1") == 1201);
}

TEST_CASE_FIXTURE(Fixture, "the furthest clocks that are read do no harm") {
  constexpr std::int64_t kFar = std::int64_t{1} << 61;
  for (const std::int64_t offset_ns : {kFar, -kFar}) {
    Incoming incoming = alive(1);
    incoming.head.clock = ClockOffset{offset_ns, kFar};
    writer->put(std::move(incoming));
  }
  wait(2);
  CHECK(count("node_clock") >= 1);
}

TEST_CASE_FIXTURE(Fixture, "what is queued at the end is stored") {
  for (int i = 0; i < 300; ++i) {
    writer->put(shipped(1, some_real_shipment(), "n" + std::to_string(i)));
  }
  writer.reset();
  wait(300);
  CHECK(count("shipper") == 300);
}

TEST_CASE_FIXTURE(Fixture, "who could not be stored may come again once that is mended") {
  writer->put(shipped(1, some_real_shipment()));
  wait(1);
  change_schema("ALTER TABLE shipper RENAME TO aside");
  writer->put(shipped(2, some_real_shipment(), "n2"));
  CHECK(problem(2) != "");
  change_schema("ALTER TABLE aside RENAME TO shipper");
  writer->put(shipped(3, some_real_shipment(), "n2"));
  CHECK(problem(3) == "");
  CHECK(count("run") == 2);
}

TEST_CASE("a full disk is told, nothing stays half stored, and it goes on once there is room") {
  const TempFolder folder;
  const SmallDisk disk(folder / "disk", "3m");
  if (!disk) {
    MESSAGE("skipped: no tmpfs can be mounted here");
    return;
  }
  Fixture full(disk.path());
  full.writer->put(shipped(1, some_real_shipment()));
  REQUIRE(full.problem(1) == "");
  const std::string filler = disk.path() + "/filler";
  std::ofstream(filler) << std::string(4 << 20, 'x');
  Shipment large = some_real_shipment();
  large.sealed[0].sealed_ns = 99;
  Segment notices{{repeated("cluster", "c", 1000), repeated("job_id", 1, 1000, 1),
                   repeated("restart_count", 0, 1000), repeated("step", "0", 1000),
                   repeated("node", "n1", 1000), repeated("time_ns", 5, 1000),
                   repeated("code", "x", 1000), repeated("text", std::string(900, 'y'), 1000)}};
  large.raw.push_back(of_first_run("notice", notices));
  full.writer->put(shipped(2, large));
  CHECK(full.problem(2) != "");
  unlink(filler.c_str());
  full.writer->put(shipped(3, some_real_shipment(), "n2"));
  CHECK(full.problem(3) == "");
  CHECK(full.count("segment") == 2);
  full.writer->put(shipped(4, large));
  CHECK(full.problem(4) == "");
  CHECK(full.count("segment") == 3);
}

TEST_CASE("a database that cannot be made is an error at the start") {
  CHECK_FALSE(Writer::start(
      "/nonexistent/cluster.db", [](const std::vector<Stored>&) {}, [](const std::string&) {}));
}
