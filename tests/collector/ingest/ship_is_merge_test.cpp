// A property: whatever is lost, repeated or late on the way, what a collector has in the end are
// the rows of the file.
#include <doctest/doctest.h>

#include <ctime>
#include <random>
#include <set>
#include <sstream>

#include "collector/ingest/store.h"
#include "collector/wire/message.h"
#include "tests/collector/ingest/node_file.h"
#include "tests/collector/ingest/stored_dump.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

using Random = std::mt19937_64;

bool chance(Random& random, int percent) {
  return random() % 100 < static_cast<std::uint64_t>(percent);
}

/// A node whose recorders write at random. Its clock goes on with everything that it does.
class RandomNode {
 public:
  RandomNode(const std::string& path, Random& random) : file_(path), random_(random) {}
  NodeFile& file() { return file_; }

  /// Something that a recorder would do.
  void act() {
    now_s_ += 0.25 + static_cast<double>(random_() % 100) / 10;
    if (runs_.empty() || (runs_.size() < 8 && chance(random_, 15))) return begin();
    Run& run = runs_[random_() % runs_.size()];
    if (run.ended) return;
    if (chance(random_, 10)) return end(run);
    if (chance(random_, 12)) return forget_notice(run);
    write(run, chance(random_, 6));
    if (chance(random_, 40)) file_.seal(run.id, now_s_);
  }
  void end_all() {
    for (Run& run : runs_) {
      now_s_ += 1;
      if (!run.ended) end(run);
    }
  }
  /// As when the file is at its limit: runs that ended are given up.
  void drop_ended() {
    run_sql(file_.db(), "PRAGMA foreign_keys = ON; DELETE FROM run WHERE end_ns IS NOT NULL");
  }

 private:
  struct Run {
    std::int64_t id = 0;
    bool ended = false;
    int phases = 0, values = 0, samples = 0;
  };

  void begin() { runs_.push_back({file_.add(100 + static_cast<int>(runs_.size()), now_s_)}); }

  void end(Run& run) {
    write(run, chance(random_, 50));
    file_.end(run.id, now_s_);
    run.ended = true;
    if (chance(random_, 80)) file_.seal(run.id, now_s_, true);
  }

  void forget_notice(const Run& run) {
    add_notice(file_.db(), "n1", "c" + std::to_string(random_() % 100), "text", "0", 7, now_s_);
    file_.commit(run.id, now_s_);
  }

  /// One commit of a recorder: samples and values at growing times, phases that open and close,
  /// some of them again. `much`: more than a shipment holds.
  void write(Run& run, bool much) {
    Database& db = file_.db();
    run_sql(db, "BEGIN");
    const auto some = [&](int most) { return static_cast<int>(random_() % most); };
    add_samples(run, much ? 3000 + some(4000) : some(400));
    add_values(run, much ? 4000 + some(6000) : some(80));
    add_phases(run, some(much ? 2000 : 60));
    for (int i = some(6); i > 0 && run.phases > 0; --i) reopen(run, 1 + some(run.phases));
    put_small_rows(run);
    file_.commit(run.id, now_s_);
    run_sql(db, "COMMIT");
  }

  /// `count` rows by one statement, numbered by i from `first` on. x: a number that looks random.
  void insert(const std::string& into, const std::string& columns, int first, int count) {
    if (count == 0) return;
    run_sql(file_.db(), "WITH RECURSIVE n(i) AS (SELECT " + std::to_string(first) +
                            " UNION ALL SELECT i + 1 FROM n WHERE i < " +
                            std::to_string(first + count - 1) + ") INSERT INTO " + into +
                            " SELECT " + columns + " FROM (SELECT i, (i * 7919 + " +
                            std::to_string(random_() % 1000) + ") % 1009 AS x FROM n)");
  }
  std::string id(const Run& run) const { return std::to_string(run.id); }
  /// The i-th of `count` times up to now, all later than those of the last commit.
  std::string time_of(int first, int count) const {
    return std::to_string(at(now_s_)) + " - (" + std::to_string(first + count) + " - i) * " +
           std::to_string(200'000'000 / (count + 1));
  }

  void add_samples(Run& run, int count) {
    insert("sample(run_id, time_ns, kind, cpu_time_ns)",
           id(run) + ", " + time_of(run.samples, count) + ", 'tick', nullif(x, 5)", run.samples,
           count);
    run.samples += count;
  }
  void add_values(Run& run, int count) {
    insert("value", id(run) + ", " + time_of(run.values, count) + ", x % 3, '', 'v' || i, x / 8.0",
           run.values, count);
    run.values += count;
  }
  void add_phases(Run& run, int count) {
    const std::string now = std::to_string(at(now_s_));
    insert("phase(run_id, scope, task, path, number, depth, count, threads, begin_ns, end_ns)",
           id(run) + ", 'task', 0, 'p', i, 0, x, 1, " + now + " - x, CASE WHEN x % 7 > 0 THEN " +
               now + " END",
           run.phases + 1, count);
    insert("counter", id(run) + ", 'task', 0, 'p', i, 'E', nullif(x, 5), NULL, NULL",
           run.phases + 1, count);
    run.phases += count;
  }
  /// Also one that is sealed already.
  void reopen(const Run& run, int number) {
    run_sql(file_.db(),
            "INSERT OR REPLACE INTO phase(run_id, scope, task, path, number, depth, count, threads,"
            " begin_ns, end_ns) VALUES(" +
                id(run) + ",'task',0,'p'," + std::to_string(number) + ",0," +
                std::to_string(random_() % 50) + ",1," + std::to_string(at(now_s_ - 0.2)) + "," +
                (chance(random_, 15) ? "NULL" : std::to_string(at(now_s_))) + ")");
    if (chance(random_, 30)) return;
    run_sql(file_.db(), "INSERT OR REPLACE INTO counter VALUES(" + id(run) + ",'task',0,'p'," +
                            std::to_string(number) + ",'E'," + std::to_string(random_() % 1000) +
                            ",NULL,NULL)");
  }

  void put_small_rows(const Run& run) {
    const std::string some = std::to_string(random_() % 300);
    run_sql(file_.db(), "INSERT OR REPLACE INTO attribute VALUES(" + id(run) + ",0,'','k" + some +
                            "','" + std::to_string(random_() % 9) + "')");
    run_sql(file_.db(), "INSERT OR REPLACE INTO task(run_id, task, start_ns, end_ns) VALUES(" +
                            id(run) + "," + std::to_string(random_() % 4) + ",1," +
                            (chance(random_, 50) ? std::to_string(at(now_s_)) : "NULL") + ")");
  }

  NodeFile file_;
  Random& random_;
  double now_s_ = 1;
  std::vector<Run> runs_;
};

/// Reads a file like a shipper; connections end whenever they like.
class RandomShipper {
 public:
  RandomShipper(ClusterFixture& cluster, Store& store, Random& random)
      : cluster_(cluster), store_(store), random_(random) {}

  /// One pass over the file. False: the connection was lost on the way.
  bool pass(Database& node, bool careful = false) {
    if (!careful && chance(random_, 20)) reconnect();
    run_sql(node, "BEGIN");
    const bool whole = pass_inside(node, careful);
    run_sql(node, "COMMIT");
    if (!whole) reconnect();
    return whole;
  }
  void reconnect() {
    change_ = stored_change_;
    notices_ = 0;
  }
  /// Something from before comes once more, as after a restored backup of a node.
  void repeat_one() {
    if (!sent_.empty()) store(sent_[random_() % sent_.size()]);
  }

 private:
  bool pass_inside(Database& node, bool careful) {
    auto reader = must_prepare(
        node, change_, [&](const RunName& name) { return store_.seen(name); }, notices_);
    for (;;) {
      auto shipment = reader.next();
      REQUIRE_MESSAGE(shipment, (shipment ? "" : shipment.error()));
      if (!*shipment) break;
      if (!careful && chance(random_, 15)) return false;  // it never arrived
      auto body = body_of(ShipHead{1, {}}, **shipment);
      REQUIRE_MESSAGE(body, (body ? "" : body.error()));
      if (sent_.size() < 200) sent_.push_back(*body);
      store(*body);
      stored_change_ = std::max(stored_change_, (*shipment)->change);
      if (!careful && chance(random_, 10)) store(*body);
      if (!careful && chance(random_, 15)) return false;  // its acknowledgement did not
      change_ = (*shipment)->change;
    }
    notices_ = reader.last_notice();
    return true;
  }

  void store(std::string_view body) {
    REQUIRE(parse_ship_head(body));
    auto shipment = parse_shipment(body);
    REQUIRE_MESSAGE(shipment, (shipment ? "" : shipment.error()));
    if (chance(random_, 5)) {  // the disk was full, and has room again
      put(*shipment, false);
      store_.forget();
    }
    put(*shipment, true);
  }

  void put(const Shipment& shipment, bool commits) {
    auto transaction = Transaction::begin(cluster_.db());
    REQUIRE(transaction);
    const auto done = store_.put(shipment);
    REQUIRE_MESSAGE(done, (done ? "" : done.error()));
    if (commits) REQUIRE(transaction->commit());
  }

  ClusterFixture& cluster_;
  Store& store_;
  Random& random_;
  std::int64_t change_ = 0, stored_change_ = 0, notices_ = 0;
  std::vector<std::string> sent_;
};

using Lines = std::multiset<std::string>;

/// Every row but those of notices, which stay when their run is given up.
Lines lines(Database& db) {
  std::istringstream all(dump_sealed(db) + dump_plain(db));
  Lines found;
  for (std::string line; std::getline(all, line);) found.insert(line);
  return found;
}

/// Those of `a` that `b` has not.
std::string beyond(const Lines& a, const Lines& b) {
  std::string out;
  for (const auto& line : a) {
    if (a.count(line) > b.count(line) && out.size() < 2000) out += line + "\n";
  }
  return out;
}

void check_history(std::uint64_t seed) {
  CAPTURE(seed);
  Random random(seed);
  ClusterFixture cluster;
  run_sql(cluster.db(), "PRAGMA synchronous = OFF");
  Store store(cluster.db());
  RandomNode node(cluster.folder() / "n1/node.db", random);
  RandomShipper shipper(cluster, store, random);
  Lines given_up;
  for (int i = 0; i < 50; ++i) {
    node.act();
    if (chance(random, 50)) shipper.pass(node.file().db());
    if (chance(random, 10)) shipper.repeat_one();
    if (i % 25 == 24) {
      shipper.pass(node.file().db(), true);
      const Lines before = lines(node.file().db());
      node.drop_ended();
      const Lines after = lines(node.file().db());
      for (const auto& line : before) {
        if (!after.contains(line)) given_up.insert(line);
      }
    }
  }
  node.end_all();
  for (int i = 0; i < 3; ++i) shipper.pass(node.file().db());
  shipper.repeat_one();
  shipper.reconnect();
  shipper.pass(node.file().db(), true);
  Lines all = lines(node.file().db());
  all.insert(given_up.begin(), given_up.end());
  const Lines came = lines(cluster.db());
  CHECK(all.size() > 1000);
  CHECK_MESSAGE(beyond(all, came) == "", "lost");
  CHECK_MESSAGE(beyond(came, all) == "", "twice, or of nobody");
  CHECK(store.count().refused == 0);
  CHECK(store.count().damaged == 0);
}

}  // namespace

TEST_CASE("whatever is lost, late or twice on the way, the collector has the rows of the file") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) check_history(seed);
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  MESSAGE("the seed from the clock is ", now);
  check_history(now);
}
