// What a cluster.db holds, for comparing.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "collector/timeline/stored_rows.h"
#include "tests/collector/fixture.h"
#include "tests/collector/segments.h"

namespace sphase::testing {

inline std::int64_t number(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE_MESSAGE(query, (query ? "" : query.error()));
  REQUIRE(query->step());
  return query->integer(0);
}

inline std::string text(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE(query);
  return query->step() ? query->maybe_text(0).value_or("NULL") : "no row";
}

using Row = std::map<std::string, std::string>;

/// Rows of a table that may be sealed, of all runs, by their key: of several with one key the one
/// that counts.
inline std::map<std::string, Row> rows(Database& db, const std::string& table) {
  std::map<std::string, Row> found;
  auto stored = StoredRows::prepare(db, table);
  REQUIRE(stored);
  auto run = db.prepare("SELECT run_id, job_id, step, start_ns FROM run ORDER BY 2, 3, 4");
  REQUIRE(run);
  while (run->step()) {
    std::int64_t unreadable = 0;
    auto parts = stored->of_run(run->integer(0), unreadable);
    REQUIRE_MESSAGE(parts, (parts ? "" : parts.error()));
    CHECK(unreadable == 0);
    for (const Segment& part : *parts) {
      for (std::size_t i = 0; i < part.rows(); ++i) {
        Row row;
        for (const auto& column : part.columns) row[column.name()] = cell(column, i);
        std::string key = run->text(1) + "|" + run->text(2) + "|" + run->text(3);
        for (const char* name : {"time_ns", "kind", "scope", "task", "path", "number", "event"}) {
          key += "|" + (part.find(name) != nullptr ? row[name] : "");
        }
        found[key] = row;
      }
    }
  }
  return found;
}

/// Rows of the tables that may be sealed, as text.
inline std::string dump_sealed(Database& db) {
  std::string out;
  for (const std::string table : {"sample", "phase", "counter"}) {
    for (const auto& [key, row] : rows(db, table)) {
      out += table + " " + key;
      for (const auto& [name, value] : row) out += "|" + value;
      out += "\n";
    }
  }
  return out;
}

/// Rows of the other ones, of each run by its name. `run`: all but its number in the file.
inline std::string dump_plain(Database& db) {
  std::string out;
  const auto add = [&](const std::string& sql) {
    auto row = db.prepare(sql);
    REQUIRE_MESSAGE(row, (row ? "" : row.error()));
    while (row->step()) {
      for (int i = 0; i < row->columns(); ++i) out += row->maybe_text(i).value_or("NULL") + "|";
      out += "\n";
    }
  };
  add("SELECT 'run', cluster, job_id, restart_count, start_ns, step, node, last_ns, end_ns,"
      " job_name, markers FROM run ORDER BY job_id, start_ns, step");
  for (const std::string table : {"task", "value", "attribute"}) {
    add("SELECT '" + table + "', job_id, step, start_ns, t.* FROM (SELECT run_id AS id, * FROM " +
        table + ") AS t JOIN (SELECT run_id AS r, job_id, step, start_ns FROM run) ON r = id");
  }
  add("SELECT 'notice', cluster, job_id, step, node, time_ns, code, text FROM notice ORDER BY"
      " job_id, step, time_ns, code");
  return out;
}

}  // namespace sphase::testing
