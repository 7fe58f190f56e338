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

/// Calls `use` with each row of a table that may be sealed, of all runs: its key, and where it is.
/// Of several with one key the last is the one that counts.
template <typename Use>
void each_row(Database& db, const std::string& table, Use use) {
  auto stored = StoredRows::prepare(db, table);
  REQUIRE(stored);
  auto run = db.prepare("SELECT run_id, job_id, step, start_ns FROM run ORDER BY 2, 3, 4");
  REQUIRE(run);
  while (run->step()) {
    const std::string name = run->text(1) + "|" + run->text(2) + "|" + run->text(3) + "|";
    std::int64_t unreadable = 0;
    auto parts = stored->of_run(run->integer(0), unreadable);
    REQUIRE_MESSAGE(parts, (parts ? "" : parts.error()));
    CHECK(unreadable == 0);
    for (const Segment& part : *parts) {
      for (std::size_t i = 0; i < part.rows(); ++i) use(name + row_key(part, table, i), part, i);
    }
  }
}

using Row = std::map<std::string, std::string>;

inline std::map<std::string, Row> rows(Database& db, const std::string& table) {
  std::map<std::string, Row> found;
  each_row(db, table, [&](const std::string& key, const Segment& part, std::size_t i) {
    Row& row = found[key];
    for (const auto& column : part.columns) row[column.name()] = cell(column, i);
  });
  return found;
}

/// Rows of the tables that may be sealed, as text.
inline std::string dump_sealed(Database& db) {
  std::string out;
  for (const std::string table : {"sample", "phase", "counter"}) {
    std::map<std::string, std::string> lines;
    each_row(db, table, [&](const std::string& key, const Segment& part, std::size_t i) {
      std::string& line = lines[key] = table + " " + key;
      for (const auto& column : part.columns) line += "|" + cell(column, i);
    });
    for (const auto& [key, line] : lines) out += line + "\n";
  }
  return out;
}

/// Rows of the other ones, of each run by its name: all but its number in the file.
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
  const auto columns = [&](const std::string& table) {
    return text(db, "SELECT group_concat('t.' || name) FROM pragma_table_info('" + table +
                        "') WHERE name NOT IN ('run_id', 'change')");
  };
  add("SELECT 'run', job_id, " + columns("run") + " FROM run AS t");
  for (const std::string table : {"task", "value", "attribute"}) {
    add("SELECT '" + table + "', run.job_id, run.step, run.start_ns, " + columns(table) + " FROM " +
        table + " AS t JOIN run USING (run_id)");
  }
  add("SELECT 'notice', " + columns("notice") + " FROM notice AS t");
  return out;
}

}  // namespace sphase::testing
