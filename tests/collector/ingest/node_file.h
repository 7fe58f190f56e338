// A node.db that grows as a recorder would let it grow, and what is read of it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/ingest/node_reader.h"
#include "spank/recorder/store/node_db.h"
#include "spank/recorder/store/seal.h"
#include "tests/collector/fixture.h"

namespace sphase::testing {

class NodeFile {
 public:
  explicit NodeFile(const std::string& path) : path_(path), db_(make_node_db(path, "n1")) {
    run_sql(db_, "PRAGMA synchronous = OFF");
  }
  Database& db() { return db_; }
  const std::string& path() const { return path_; }

  /// A run that goes on, with its first commit at `begin_s`.
  std::int64_t add(std::int64_t job_id, double begin_s = 0) {
    RunSpec spec;
    spec.job_id = job_id;
    spec.begin_s = spec.last_s.emplace(begin_s);
    spec.end_s = std::nullopt;
    const std::int64_t run = add_run(db_, spec);
    commit(run, begin_s);
    return run;
  }
  /// What a recorder does at the end of a transaction: a sign of life, and the next change.
  void commit(std::int64_t run, double last_s) {
    run_sql(db_, "SAVEPOINT one");  // a transaction of its own, or a part of the caller's
    run_sql(db_, "UPDATE run SET last_ns = " + std::to_string(at(last_s)) +
                     " WHERE run_id = " + std::to_string(run));
    const auto noted = note_change(db_, run);
    REQUIRE_MESSAGE(noted, (noted ? "" : noted.error()));
    run_sql(db_, "RELEASE one");
  }
  void end(std::int64_t run, double end_s) {
    run_sql(db_, "UPDATE run SET end_ns = " + std::to_string(at(end_s)) +
                     " WHERE run_id = " + std::to_string(run));
    commit(run, end_s);
  }
  /// Seals what a recorder would seal; at the end of a run everything.
  void seal(std::int64_t run, double now_s, bool ended = false) {
    Batch batch;  // the sealer only counts what was written
    batch.samples.resize(Sealer::kWorth);
    batch.phases.resize(Sealer::kWorth);
    sealers_[run].wrote(batch);
    const auto sealed = sealers_[run].seal(db_, {run, ended, at(now_s)});
    REQUIRE_MESSAGE(sealed, (sealed ? "" : sealed.error()));
  }
  std::int64_t change() {
    auto query = db_.prepare("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'change'");
    REQUIRE(query);
    REQUIRE(query->step());
    return query->integer(0);
  }

 private:
  std::string path_;
  Database db_;
  std::map<std::int64_t, Sealer> sealers_;
};

inline void add_value(Database& db, std::int64_t run, double time_s, const std::string& name,
                      double value = 1) {
  auto insert = db.prepare("INSERT INTO value VALUES(?,?,0,'',?,?)");
  REQUIRE(insert);
  insert->bind(1, run).bind(2, at(time_s)).bind(3, name);
  const auto done = insert->bind(4, value).run();
  REQUIRE_MESSAGE(done, (done ? "" : done.error()));
}

inline NodeReader must_prepare(Database& db, std::int64_t after, const SeenOf& seen,
                               std::int64_t notices = 0) {
  auto reader = NodeReader::prepare(db.raw(), after, seen, notices);
  REQUIRE_MESSAGE(reader, (reader ? "" : reader.error()));
  return std::move(*reader);
}

inline std::vector<Shipment> read_all(NodeReader& reader) {
  std::vector<Shipment> all;
  for (;;) {
    auto shipment = reader.next();
    REQUIRE_MESSAGE(shipment, (shipment ? "" : shipment.error()));
    if (!*shipment) return all;
    all.push_back(std::move(**shipment));
    REQUIRE(all.size() < 10'000);
  }
}

/// All shipments to somebody who has that of each run.
inline std::vector<Shipment> shipments(Database& db, const RunSeen& seen = {},
                                       std::int64_t after = -1, std::int64_t notices = 0) {
  auto reader = must_prepare(
      db, after, [&](const RunName&) { return Result<RunSeen>(seen); }, notices);
  return read_all(reader);
}

/// Rows of a table in them that are not sealed.
inline std::size_t raw_rows(const std::vector<Shipment>& all, const std::string& table) {
  std::size_t rows = 0;
  for (const auto& shipment : all) {
    for (const auto& raw : shipment.raw) rows += raw.table == table ? raw.rows.rows() : 0;
  }
  return rows;
}

inline std::size_t segments(const std::vector<Shipment>& all) {
  std::size_t count = 0;
  for (const auto& shipment : all) count += shipment.sealed.size();
  return count;
}

}  // namespace sphase::testing
