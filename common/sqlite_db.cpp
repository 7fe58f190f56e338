#include "common/sqlite_db.h"

namespace sphase {

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(raw_.get(), index, value);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  sqlite3_bind_double(raw_.get(), index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  // An empty view may carry a null pointer, which SQLite would store as NULL.
  sqlite3_bind_text(raw_.get(), index, value.empty() ? "" : value.data(),
                    static_cast<int>(value.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  sqlite3_bind_blob(raw_.get(), index, bytes.empty() ? "" : bytes.data(),
                    static_cast<int>(bytes.size()), SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(raw_.get(), index);
  return *this;
}

bool Statement::step() {
  code_ = sqlite3_step(raw_.get());
  if (code_ == SQLITE_ROW) return true;
  if (code_ != SQLITE_DONE) message_ = sqlite3_errmsg(sqlite3_db_handle(raw_.get()));
  sqlite3_reset(raw_.get());
  return false;
}

Status Statement::run() {
  while (step()) {
  }
  return status();
}

Status Statement::status() const {
  if (code_ == SQLITE_OK || code_ == SQLITE_ROW || code_ == SQLITE_DONE) return Done{};
  return Error{message_};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(raw_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(raw_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(raw_.get(), column); }

std::string_view Statement::text_view(int column) const {
  const void* const bytes = type(column) == SQLITE_BLOB ? sqlite3_column_blob(raw_.get(), column)
                                                        : sqlite3_column_text(raw_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(raw_.get(), column))};
}

std::optional<std::int64_t> Statement::maybe_integer(int column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

std::optional<double> Statement::maybe_real(int column) const {
  if (is_null(column)) return std::nullopt;
  return real(column);
}

std::optional<std::string> Statement::maybe_text(int column) const {
  if (is_null(column)) return std::nullopt;
  return text(column);
}

Result<Database> Database::open(const std::string& path, Mode mode, int busy_ms) {
  int flags = SQLITE_OPEN_NOMUTEX;
  switch (mode) {
    case Mode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database db(raw);
  if (code != SQLITE_OK) {
    const char* why = raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(code);
    return Error{"cannot open " + path + ": " + why};
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busy_ms);
  return db;
}

Error Database::error(std::string_view what) const {
  return Error{std::string(what) + ": " + sqlite3_errmsg(raw_.get())};
}

Status Database::exec(const char* sql) {
  if (sqlite3_exec(raw_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(raw_.get())};
  }
  return Done{};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(raw_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr) !=
      SQLITE_OK) {
    return error(sql.substr(0, sql.find('\n')));
  }
  return Statement(raw);
}

Result<int> Database::user_version() {
  auto query = prepare("PRAGMA user_version");
  if (!query) return Error{query.error()};
  if (!query->step()) return Error{query->status() ? "no user_version" : query->status().error()};
  const int version = static_cast<int>(query->integer(0));
  while (query->step()) {
  }
  return version;
}

Status Database::set_user_version(int version) {
  return exec("PRAGMA user_version = " + std::to_string(version));
}

Result<Transaction> Transaction::begin(Database& db) {
  auto begun = db.exec("BEGIN IMMEDIATE");
  if (!begun) return Error{begun.error()};
  return Transaction(&db);
}

Transaction::~Transaction() {
  if (db_ == nullptr) return;
  // Nothing to tell anybody: what was in it is still with the caller, who saw the first error.
  (void)static_cast<bool>(db_->exec("ROLLBACK"));
}

Status Transaction::commit() {
  auto done = db_->exec("COMMIT");
  if (done) db_ = nullptr;
  return done;
}

}  // namespace sphase
