#include "common/sqlite_db.h"

#include <doctest/doctest.h>

#include "tests/common/tools.h"

using sphase::Database;
using sphase::Transaction;
using sphase::testing::TempFolder;

namespace {

Database open_new(const std::string& path, int busy_ms = 2000) {
  auto db = Database::open(path, Database::Mode::kCreate, busy_ms);
  REQUIRE(db);
  return std::move(*db);
}

std::int64_t count(Database& db, const std::string& table) {
  auto query = db.prepare("SELECT count(*) FROM " + table);
  REQUIRE(query);
  REQUIRE(query->step());
  return query->integer(0);
}

}  // namespace

TEST_CASE("NULL and 0 are different on the way in and on the way out") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  REQUIRE(db.exec("CREATE TABLE t (a INTEGER, b REAL, c TEXT)"));
  auto insert = db.prepare("INSERT INTO t VALUES (?,?,?)");
  REQUIRE(insert);
  insert->bind(1, std::optional<std::int64_t>()).bind(2, std::optional<double>());
  insert->bind(3, std::optional<std::string>());
  REQUIRE(insert->run());
  insert->bind(1, 0).bind(2, 0.0).bind(3, "");
  REQUIRE(insert->run());

  auto query = db.prepare("SELECT a, b, c FROM t ORDER BY rowid");
  REQUIRE(query);
  REQUIRE(query->step());
  CHECK(query->maybe_integer(0) == std::nullopt);
  CHECK(query->maybe_real(1) == std::nullopt);
  CHECK(query->maybe_text(2) == std::nullopt);
  REQUIRE(query->step());
  CHECK(query->maybe_integer(0) == 0);
  CHECK(query->maybe_real(1) == 0.0);
  CHECK(query->maybe_text(2) == "");
  CHECK_FALSE(query->is_null(2));
  CHECK_FALSE(query->step());
  CHECK(query->status());
}

TEST_CASE("numbers and text come back whole") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  auto query = db.prepare("SELECT ?, ?, ?, ?");
  REQUIRE(query);
  query->bind(1, INT64_MIN).bind(2, std::uint32_t{4294967295}).bind(3, 0.1);
  query->bind(4, std::string_view("a\0b", 3));
  REQUIRE(query->step());
  CHECK(query->integer(0) == INT64_MIN);
  CHECK(query->integer(1) == 4294967295);
  CHECK(query->real(2) == 0.1);
  CHECK(query->text(3) == std::string("a\0b", 3));
}

TEST_CASE("an empty string_view without a buffer is stored as empty text") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  auto query = db.prepare("SELECT ? IS NULL");
  REQUIRE(query);
  query->bind(1, std::string_view());
  REQUIRE(query->step());
  CHECK(query->integer(0) == 0);
}

TEST_CASE("wrong SQL is an error that quotes its first line") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  const auto bad = db.prepare("SELEKT 1\nFROM t");
  CHECK_FALSE(bad);
  CHECK(bad.error().find("SELEKT 1: ") == 0);
  CHECK(bad.error().find("FROM") == std::string::npos);
  CHECK_FALSE(db.exec("INSERT INTO nowhere VALUES (1)"));
}

TEST_CASE("a missing file is an error, unless it is to be made") {
  const TempFolder folder;
  const auto missing = Database::open(folder / "no.db", Database::Mode::kReadOnly);
  CHECK_FALSE(missing);
  CHECK(missing.error().find("cannot open " + (folder / "no.db")) == 0);
  CHECK_FALSE(Database::open(folder / "no.db", Database::Mode::kReadWrite));
  CHECK_FALSE(Database::open(folder / "no/no.db", Database::Mode::kCreate));
}

TEST_CASE("a file that is no database fails at its first statement") {
  const TempFolder folder;
  auto db =
      Database::open(folder.write("x.db", std::string(4096, 'x')), Database::Mode::kReadWrite);
  REQUIRE(db);
  const auto version = db->user_version();
  CHECK_FALSE(version);
  CHECK(version.error().find("not a database") != std::string::npos);
  CHECK(sqlite3_errcode(db->raw()) == SQLITE_NOTADB);
}

TEST_CASE("a damaged page is an error of the statement that meets it, with a sentence") {
  const TempFolder folder;
  const std::string path = folder / "a.db";
  {
    Database db = open_new(path);
    REQUIRE(db.exec("CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('x')"));
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(4096, '\xee');
  }
  Database db = open_new(path);
  auto query = db.prepare("SELECT a FROM t");
  REQUIRE(query);
  CHECK_FALSE(query->step());
  const auto failed = query->status();
  REQUIRE_FALSE(failed);
  CHECK(failed.error().find("malformed") != std::string::npos);
  CHECK((sqlite3_extended_errcode(db.raw()) & 0xff) == SQLITE_CORRUPT);
}

TEST_CASE("a file held by another connection is an error after the busy time-out") {
  const TempFolder folder;
  Database holder = open_new(folder / "a.db");
  REQUIRE(holder.exec("CREATE TABLE t (a)"));
  auto held = Transaction::begin(holder);
  REQUIRE(held);
  Database other = open_new(folder / "a.db", 20);
  const auto busy = Transaction::begin(other);
  CHECK_FALSE(busy);
  CHECK(busy.error().find("locked") != std::string::npos);
  REQUIRE(held->commit());
  CHECK(Transaction::begin(other));
}

TEST_CASE("a transaction that is not committed leaves nothing behind") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  REQUIRE(db.exec("CREATE TABLE t (a)"));
  {
    auto transaction = Transaction::begin(db);
    REQUIRE(transaction);
    REQUIRE(db.exec("INSERT INTO t VALUES (1)"));
  }
  CHECK(count(db, "t") == 0);
  auto transaction = Transaction::begin(db);
  REQUIRE(transaction);
  REQUIRE(db.exec("INSERT INTO t VALUES (1)"));
  REQUIRE(transaction->commit());
  CHECK(count(db, "t") == 1);
}

TEST_CASE("a moved transaction is rolled back once") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  REQUIRE(db.exec("CREATE TABLE t (a)"));
  {
    auto first = Transaction::begin(db);
    REQUIRE(first);
    const Transaction second(std::move(*first));
    REQUIRE(db.exec("INSERT INTO t VALUES (1)"));
  }
  CHECK(count(db, "t") == 0);
  CHECK(Transaction::begin(db));
}

TEST_CASE("a statement runs again after an error") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  REQUIRE(db.exec("CREATE TABLE t (a INTEGER PRIMARY KEY)"));
  auto insert = db.prepare("INSERT INTO t VALUES (?)");
  REQUIRE(insert);
  REQUIRE(insert->bind(1, 1).run());
  const auto twice = insert->bind(1, 1).run();
  REQUIRE_FALSE(twice);
  CHECK(twice.error().find("UNIQUE") != std::string::npos);
  CHECK(insert->bind(1, 2).run());
  CHECK(db.changes() == 1);
  CHECK(db.last_rowid() == 2);
}

TEST_CASE("the schema version is kept in the file") {
  const TempFolder folder;
  {
    Database db = open_new(folder / "a.db");
    REQUIRE(db.user_version());
    CHECK(*db.user_version() == 0);
    REQUIRE(db.set_user_version(7));
  }
  Database db = open_new(folder / "a.db");
  REQUIRE(db.user_version());
  CHECK(*db.user_version() == 7);
}

TEST_CASE("bytes come back whole, and a row tells its columns' names and types") {
  const TempFolder folder;
  Database db = open_new(folder / "a.db");
  auto query = db.prepare("SELECT ? AS data, ? AS empty, 1 AS one, 0.5, NULL, 'x'");
  REQUIRE(query);
  const std::string bytes("a\0\xff", 3);
  query->bind_blob(1, bytes).bind_blob(2, "");
  REQUIRE(query->step());
  CHECK(query->columns() == 6);
  CHECK(query->name(0) == "data");
  CHECK(query->name(2) == "one");
  CHECK(query->type(0) == SQLITE_BLOB);
  CHECK(query->type(1) == SQLITE_BLOB);
  CHECK(query->type(2) == SQLITE_INTEGER);
  CHECK(query->type(3) == SQLITE_FLOAT);
  CHECK(query->type(4) == SQLITE_NULL);
  CHECK(query->type(5) == SQLITE_TEXT);
  CHECK(query->text_view(0) == bytes);
  CHECK(query->text_view(1) == "");
  CHECK(query->text_view(4) == "");
}
