// SQLite held by RAII, with errors as sentences. A thin layer: SQL stays visible where it is used.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace sphase {

/// A prepared statement. Not thread-safe, like its connection.
///   auto insert = db.prepare("INSERT INTO t VALUES(?,?)");
///   insert->bind(1, name).bind(2, maybe_number);      // nullopt binds NULL
///   while (insert->step()) … insert->integer(0);       // or insert->run()
class Statement {
 public:
  explicit Statement(sqlite3_stmt* raw) : raw_(raw) {}

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view value);
  Statement& bind(int index, const char* value) { return bind(index, std::string_view(value)); }
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);
  template <typename T>
  Statement& bind(int index, const std::optional<T>& value) {
    return value ? bind(index, *value) : bind_null(index);
  }
  Statement& bind(int index, int value) { return bind(index, static_cast<std::int64_t>(value)); }
  Statement& bind(int index, std::uint32_t value) {
    return bind(index, static_cast<std::int64_t>(value));
  }

  /// True while there is a row. At the end (or on an error, kept in `status`) false; then reset.
  bool step();
  /// Runs to the end, resets, clears no bindings. The error, if one came up in any step.
  Status run();
  Status status() const;

  int columns() const { return sqlite3_column_count(raw_.get()); }
  std::string name(int column) const { return sqlite3_column_name(raw_.get(), column); }
  /// SQLITE_INTEGER, SQLITE_FLOAT, SQLITE_TEXT, SQLITE_BLOB or SQLITE_NULL; of this row.
  int type(int column) const { return sqlite3_column_type(raw_.get(), column); }
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const { return std::string(text_view(column)); }
  /// Text or blob as it lies there. Valid until the next step.
  std::string_view text_view(int column) const;
  std::optional<std::int64_t> maybe_integer(int column) const;
  std::optional<double> maybe_real(int column) const;
  std::optional<std::string> maybe_text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
  int code_ = SQLITE_OK;
  std::string message_;
};

class Database {
 public:
  enum class Mode { kReadOnly, kReadWrite, kCreate };

  /// Opens `path` and sets a busy time-out. Reading a damaged file fails at the first statement,
  /// not here: see check().
  static Result<Database> open(const std::string& path, Mode mode, int busy_ms = 2000);

  Status exec(const char* sql);
  Status exec(const std::string& sql) { return exec(sql.c_str()); }
  Result<Statement> prepare(std::string_view sql);
  /// PRAGMA user_version. Fails on a file that is not a database.
  Result<int> user_version();
  Status set_user_version(int version);
  std::int64_t last_rowid() const { return sqlite3_last_insert_rowid(raw_.get()); }
  std::int64_t changes() const { return sqlite3_changes64(raw_.get()); }
  sqlite3* raw() { return raw_.get(); }

 private:
  explicit Database(sqlite3* raw) : raw_(raw) {}
  Error error(std::string_view what) const;

  struct Close {
    void operator()(sqlite3* raw) const { sqlite3_close_v2(raw); }
  };
  std::unique_ptr<sqlite3, Close> raw_;
};

/// BEGIN IMMEDIATE … COMMIT; rolls back when it goes out of scope uncommitted.
class Transaction {
 public:
  static Result<Transaction> begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;
};

}  // namespace sphase
