#include "collector/ingest/sources.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "common/vocabulary.h"

namespace sphase {
namespace {

namespace fs = std::filesystem;

constexpr int kSearchDepth = 3;
constexpr std::string_view kMagic = "SQLite format 3";  // and a NUL; sqlite.org/fileformat.html

std::optional<SourceFile> as_source(const fs::path& path) {
  if (path.filename() == "node.db") return SourceFile{SourceFile::Kind::kNodeDb, path};
  if (path.extension() == ".note") return SourceFile{SourceFile::Kind::kNote, path};
  return std::nullopt;
}

void search(const fs::path& folder, int depth, std::vector<SourceFile>& found) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const auto status = entry.symlink_status(failed);
    // Notes lie one level below the node.db beside them: RUN_DIR/notes.
    const bool note = entry.path().extension() == ".note" && folder.filename() == "notes";
    if (fs::is_directory(status)) {
      const int limit = entry.path().filename() == "notes" ? kSearchDepth + 1 : kSearchDepth;
      if (depth < limit) search(entry.path(), depth + 1, found);
    } else if (fs::is_regular_file(status) && (note || entry.path().filename() == "node.db")) {
      found.push_back(*as_source(entry.path()));
    }
  }
}

/// The header tells an empty or a foreign file apart before SQLite does, and in plainer words.
Status check_header(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error("cannot open " + path);
  std::array<char, kMagic.size() + 1> head{};
  file.read(head.data(), head.size());
  if (file.gcount() == 0) return Error{path + " is empty"};
  if (file.gcount() < static_cast<std::streamsize>(head.size()) ||
      std::string_view(head.data(), kMagic.size()) != kMagic) {
    return Error{path + " is not an SQLite database"};
  }
  return Done{};
}

Result<SourceDb> open_as(const std::string& path, const char* options) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '?' || c == '#' || c == '%') {
      static constexpr std::string_view kHex = "0123456789ABCDEF";
      uri += '%';
      uri += kHex[static_cast<unsigned char>(c) >> 4];
      uri += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2((uri + options).c_str(), &raw,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  SourceDb db{std::unique_ptr<sqlite3, CloseSqlite>(raw), ""};
  if (code != SQLITE_OK) return Error{"cannot open " + path + ": " + sqlite3_errstr(code)};
  sqlite3_busy_timeout(raw, 5000);
  // The file may have been put there by anybody: none of its own code is to run.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return db;
}

/// First column of the first row. Starts the read transaction of which everything else is part.
Result<std::int64_t> number(sqlite3* raw, const char* sql) {
  sqlite3_stmt* query = nullptr;
  if (sqlite3_prepare_v2(raw, sql, -1, &query, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(raw)};
  }
  const int code = sqlite3_step(query);
  const std::int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(query, 0) : 0;
  const std::string why = sqlite3_errmsg(raw);
  sqlite3_finalize(query);
  if (code != SQLITE_ROW) return Error{why};
  return value;
}

Status check_tables(sqlite3* raw, const std::string& path) {
  auto version = number(raw, "PRAGMA user_version");
  if (!version) return Error{path + " is damaged: " + version.error()};
  // Before the version: that of a cluster.db is another number.
  auto cluster = number(raw, "SELECT count(*) FROM sqlite_schema WHERE name = 'allocation_node'");
  if (!cluster) return Error{path + " is damaged: " + cluster.error()};
  if (*cluster != 0) return Error{path + " is a cluster.db: name the node.db files themselves"};
  if (*version > kSchemaVersion) {
    return Error{path + " has schema version " + std::to_string(*version) +
                 ", newer than this program (" + std::to_string(kSchemaVersion) +
                 "): update sphase-collector"};
  }
  auto ours = number(raw,
                     "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                     "('run','task','sample','phase','value','attribute','notice','meta')");
  if (!ours) return Error{path + " is damaged: " + ours.error()};
  if (*ours != 8 || *version == 0) return Error{path + " is not a node.db"};
  return Done{};
}

bool left_out_wal(const std::string& path) {
  std::error_code failed;
  const auto bytes = fs::file_size(path + "-wal", failed);
  return !failed && bytes > 0;
}

}  // namespace

Result<std::vector<SourceFile>> find_sources(const std::string& path) {
  std::error_code failed;
  const fs::path absolute = fs::canonical(path, failed);
  if (failed) return Error{"cannot open " + path + ": " + failed.message()};
  std::vector<SourceFile> found;
  if (!fs::is_directory(absolute)) {
    found.push_back(
        as_source(absolute).value_or(SourceFile{SourceFile::Kind::kNodeDb, absolute.string()}));
    return found;
  }
  search(absolute, 1, found);
  std::sort(found.begin(), found.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return found;
}

Result<SourceDb> open_source_db(const std::string& path) {
  if (auto header = check_header(path); !header) return Error{header.error()};
  auto db = open_as(path, "?mode=ro");
  if (!db) return db;
  sqlite3_exec(db->raw.get(), "BEGIN", nullptr, nullptr, nullptr);
  if (!number(db->raw.get(), "SELECT count(*) FROM sqlite_schema") &&
      sqlite3_errcode(db->raw.get()) == SQLITE_CANTOPEN) {
    // A WAL file where no -shm can be made: read-only media. Nobody writes it while we read.
    db = open_as(path, "?immutable=1");
    if (!db) return db;
    if (left_out_wal(path))
      db->warning = path + "-wal could not be read: its newest rows are missing";
    sqlite3_exec(db->raw.get(), "BEGIN", nullptr, nullptr, nullptr);
  }
  if (auto tables = check_tables(db->raw.get(), path); !tables) return Error{tables.error()};
  return db;
}

}  // namespace sphase
