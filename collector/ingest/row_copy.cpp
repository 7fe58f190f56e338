#include "collector/ingest/row_copy.h"

#include <algorithm>

namespace sphase {
namespace {

Result<std::vector<std::string>> columns_of(sqlite3* db, const std::string& table) {
  sqlite3_stmt* query = nullptr;
  if (sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?)", -1, &query, nullptr) !=
      SQLITE_OK) {
    return Error{sqlite3_errmsg(db)};
  }
  sqlite3_bind_text(query, 1, table.c_str(), -1, SQLITE_TRANSIENT);
  std::vector<std::string> names;
  while (sqlite3_step(query) == SQLITE_ROW) {
    names.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(query, 0)));
  }
  sqlite3_finalize(query);
  if (names.empty()) return Error{"no table " + table};
  return names;
}

}  // namespace

Result<std::vector<std::string>> shared_columns(sqlite3* from, sqlite3* to,
                                                const std::string& table) {
  auto theirs = columns_of(from, table);
  if (!theirs) return theirs;
  auto ours = columns_of(to, table);
  if (!ours) return ours;
  std::erase_if(*ours, [&](const std::string& name) {
    return name == "run_id" || std::find(theirs->begin(), theirs->end(), name) == theirs->end();
  });
  return ours;
}

std::string join_columns(const std::vector<std::string>& columns, const char* suffix) {
  std::string joined;
  for (const auto& name : columns) {
    if (!joined.empty()) joined += ", ";
    joined += '"' + name + '"' + suffix;
  }
  return joined;
}

Result<RowCopy> RowCopy::prepare(sqlite3* from, sqlite3* to, const std::string& table,
                                 Present present) {
  auto columns = shared_columns(from, to, table);
  if (!columns) return Error{columns.error()};
  const std::string names = join_columns(*columns);
  const std::string read = "SELECT " + names + " FROM main." + table + " WHERE run_id = ?";
  std::string write = present == Present::kKeep ? "INSERT OR IGNORE" : "INSERT OR REPLACE";
  write += " INTO " + table + "(run_id, " + names + ") VALUES(?";
  for (std::size_t i = 0; i < columns->size(); ++i) write += ",?";
  write += ")";
  sqlite3_stmt* select = nullptr;
  sqlite3_stmt* insert = nullptr;
  if (sqlite3_prepare_v2(from, read.c_str(), -1, &select, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(from)};
  }
  Raw selecting(select);
  if (sqlite3_prepare_v2(to, write.c_str(), -1, &insert, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(to)};
  }
  return RowCopy(std::move(selecting), Raw(insert), static_cast<int>(columns->size()));
}

Result<std::int64_t> RowCopy::copy(std::int64_t from_run, std::int64_t to_run) {
  sqlite3* from = sqlite3_db_handle(select_.get());
  sqlite3* to = sqlite3_db_handle(insert_.get());
  std::int64_t written = 0;
  sqlite3_bind_int64(select_.get(), 1, from_run);
  sqlite3_bind_int64(insert_.get(), 1, to_run);
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(select_.get())) == SQLITE_ROW) {
    for (int i = 0; i < columns_; ++i) {
      sqlite3_bind_value(insert_.get(), i + 2, sqlite3_column_value(select_.get(), i));
    }
    if (sqlite3_step(insert_.get()) != SQLITE_DONE) {
      const std::string why = sqlite3_errmsg(to);
      sqlite3_reset(insert_.get());
      sqlite3_reset(select_.get());
      return Error{why};
    }
    written += sqlite3_changes64(to);
    sqlite3_reset(insert_.get());
  }
  const std::string why = sqlite3_errmsg(from);
  sqlite3_reset(select_.get());
  if (code != SQLITE_DONE) return Error{why};
  return written;
}

}  // namespace sphase
