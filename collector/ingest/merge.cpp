#include "collector/ingest/merge.h"

#include <array>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collector/ingest/row_copy.h"
#include "collector/ingest/segment_copy.h"
#include "common/note_file.h"

namespace sphase {
namespace {

/// How the file's word on a run stands to what cluster.db holds of it.
enum class News { kNew, kNewer, kSame, kOlder };

struct KnownRun {
  std::int64_t run_id;
  std::int64_t last_ns;
  std::optional<std::int64_t> end_ns;
};

News compare(const KnownRun& ours, std::int64_t last_ns, std::optional<std::int64_t> end_ns) {
  // A run that has ended is final: its child rows came in the same transaction.
  if (ours.end_ns && end_ns == ours.end_ns && last_ns == ours.last_ns) return News::kSame;
  if (last_ns != ours.last_ns) return last_ns > ours.last_ns ? News::kNewer : News::kOlder;
  return ours.end_ns && !end_ns ? News::kOlder : News::kNewer;
}

struct Child {
  const char* table;
  RowCopy::Present present;  // when the file's word is newer
  int since = 1;             // version of node.db
  bool sealed = false;       // table `segment` may have rows of it
};
// Samples and values are written once; the others may still change while a run goes on.
constexpr std::array<Child, 6> kChildren = {{{"task", RowCopy::Present::kReplace},
                                             {"sample", RowCopy::Present::kKeep, 1, true},
                                             {"phase", RowCopy::Present::kReplace, 1, true},
                                             {"value", RowCopy::Present::kKeep},
                                             {"attribute", RowCopy::Present::kReplace},
                                             {"counter", RowCopy::Present::kReplace, 2, true}}};
constexpr int kSegmentsSince = 2;

/// One file on its way into cluster.db.
class NodeMerge {
 public:
  NodeMerge(Database& cluster, sqlite3* node) : cluster_(cluster), node_(node) {}

  Result<MergeCount> run() {
    if (auto prepared = prepare(); !prepared) return Error{prepared.error()};
    if (auto merged = merge_runs(); !merged) return Error{merged.error()};
    if (auto merged = merge_notices(); !merged) return Error{merged.error()};
    if (damaged_.count > 0) {
      count_.warning =
          std::to_string(damaged_.count) +
          " segments could not be read, their rows are missing; the first: " + damaged_.first;
    }
    return count_;
  }

 private:
  Status prepare();
  Status merge_runs();
  Status merge_run(sqlite3_stmt* row);
  Result<std::optional<KnownRun>> known(sqlite3_stmt* row);
  Result<std::int64_t> write_run(sqlite3_stmt* row, const std::optional<KnownRun>& known);
  struct Copies {  // of one table
    Child child;
    RowCopy newer, older;
    std::optional<SegmentCopy> sealed;
  };
  Status prepare(const Child& child, int version);
  Result<std::int64_t> copy_child(Copies& table, std::int64_t from, std::int64_t to, bool newer);
  Status copy_children(std::int64_t from, std::int64_t to, bool newer);
  Status merge_notices();

  Database& cluster_;
  sqlite3* node_;
  MergeCount count_;
  std::vector<std::string> columns_;  // of run, after the identity
  std::vector<Copies> copies_;
  DamagedSegments damaged_;
  std::unordered_map<std::int64_t, std::int64_t> run_ids_;  // the file's -> cluster.db's
};

constexpr const char* kIdentity = "cluster, job_id, restart_count, start_ns, step, node";
// Columns of the SELECT in merge_runs: run_id, the six of the identity, last_ns, end_ns, the rest.
constexpr int kIdentityAt = 1, kIdentityCount = 6, kLastAt = 7, kEndAt = 8, kRestAt = 9;

bool is_identity(const std::string& name) {
  return name == "cluster" || name == "job_id" || name == "restart_count" || name == "start_ns" ||
         name == "step" || name == "node";
}

int version_of(sqlite3* node) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(node, "PRAGMA main.user_version", -1, &raw, nullptr) != SQLITE_OK)
    return 0;
  Statement query(raw);
  return query.step() ? static_cast<int>(query.integer(0)) : 0;
}

Status NodeMerge::prepare() {
  auto columns = shared_columns(node_, cluster_.raw(), "run");
  if (!columns) return Error{columns.error()};
  columns_ = *columns;
  std::erase_if(columns_, is_identity);
  const int version = version_of(node_);
  for (const auto& child : kChildren) {
    if (child.since > version) continue;
    if (auto prepared = prepare(child, version); !prepared) return prepared;
  }
  return Done{};
}

Status NodeMerge::prepare(const Child& child, int version) {
  auto newer = RowCopy::prepare(node_, cluster_.raw(), child.table, child.present);
  if (!newer) return Error{newer.error()};
  auto older = RowCopy::prepare(node_, cluster_.raw(), child.table, RowCopy::Present::kKeep);
  if (!older) return Error{older.error()};
  Copies copies{child, std::move(*newer), std::move(*older), std::nullopt};
  if (child.sealed && version >= kSegmentsSince) {
    auto sealed = SegmentCopy::prepare(node_, cluster_, child.table);
    if (!sealed) return Error{sealed.error()};
    copies.sealed.emplace(std::move(*sealed));
  }
  copies_.push_back(std::move(copies));
  return Done{};
}

Status NodeMerge::merge_runs() {
  const std::string sql = std::string("SELECT run_id, ") + kIdentity +
                          ", coalesce(last_ns, start_ns), end_ns, " + join_columns(columns_) +
                          " FROM main.run ORDER BY run_id";
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(node_, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(node_)};
  }
  Statement row(raw);
  while (row.step()) {
    if (auto merged = merge_run(raw); !merged) return merged;
  }
  return row.status();
}

void bind_value(Statement& to, int index, sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
      to.bind(index, static_cast<std::int64_t>(sqlite3_column_int64(row, column)));
      break;
    case SQLITE_FLOAT:
      to.bind(index, sqlite3_column_double(row, column));
      break;
    case SQLITE_NULL:
      to.bind_null(index);
      break;
    default:
      to.bind(index,
              std::string_view(reinterpret_cast<const char*>(sqlite3_column_text(row, column)),
                               static_cast<std::size_t>(sqlite3_column_bytes(row, column))));
  }
}

Result<std::optional<KnownRun>> NodeMerge::known(sqlite3_stmt* row) {
  auto query = cluster_.prepare(
      "SELECT run_id, coalesce(last_ns, start_ns), end_ns FROM run WHERE cluster = ? AND job_id = ?"
      " AND restart_count = ? AND start_ns = ? AND step = ? AND node = ?");
  if (!query) return Error{query.error()};
  for (int i = 0; i < kIdentityCount; ++i) bind_value(*query, i + 1, row, kIdentityAt + i);
  if (query->step()) {
    return std::optional(KnownRun{query->integer(0), query->integer(1), query->maybe_integer(2)});
  }
  if (!query->status()) return Error{query->status().error()};
  return std::optional<KnownRun>();
}

Result<std::int64_t> NodeMerge::write_run(sqlite3_stmt* row, const std::optional<KnownRun>& known) {
  std::string sql;
  if (known) {
    sql = "UPDATE run SET " + join_columns(columns_, " = ?") + " WHERE run_id = ?";
  } else {
    sql = "INSERT INTO run(" + join_columns(columns_) + ", " + kIdentity + ") VALUES(?";
    for (std::size_t i = 1; i < columns_.size() + kIdentityCount; ++i) sql += ",?";
    sql += ")";
  }
  auto write = cluster_.prepare(sql);
  if (!write) return Error{write.error()};
  const int rest = static_cast<int>(columns_.size());
  for (int i = 0; i < rest; ++i) bind_value(*write, i + 1, row, kRestAt + i);
  if (known) {
    write->bind(rest + 1, known->run_id);
  } else {
    for (int i = 0; i < kIdentityCount; ++i) bind_value(*write, rest + 1 + i, row, kIdentityAt + i);
  }
  if (auto written = write->run(); !written) return Error{written.error()};
  return known ? known->run_id : cluster_.last_rowid();
}

/// A raw row wins over the same row in a segment: it comes last where it replaces, else first.
Result<std::int64_t> NodeMerge::copy_child(Copies& table, std::int64_t from, std::int64_t to,
                                           bool newer) {
  const auto present = newer ? table.child.present : RowCopy::Present::kKeep;
  RowCopy& raw = newer ? table.newer : table.older;
  if (!table.sealed) return raw.copy(from, to);
  std::int64_t written = 0;
  const bool raw_first = present == RowCopy::Present::kKeep;
  for (const bool raw_turn : {raw_first, !raw_first}) {
    auto rows = raw_turn ? raw.copy(from, to) : table.sealed->copy(from, to, present, damaged_);
    if (!rows) return rows;
    written += *rows;
  }
  return written;
}

Status NodeMerge::copy_children(std::int64_t from, std::int64_t to, bool newer) {
  for (Copies& table : copies_) {
    auto copied = copy_child(table, from, to, newer);
    if (!copied) return Error{copied.error()};
    count_.rows += *copied;
  }
  return Done{};
}

Status NodeMerge::merge_run(sqlite3_stmt* row) {
  const std::int64_t from = sqlite3_column_int64(row, 0);
  std::optional<std::int64_t> end_ns;
  if (sqlite3_column_type(row, kEndAt) != SQLITE_NULL) end_ns = sqlite3_column_int64(row, kEndAt);
  auto ours = known(row);
  if (!ours) return Error{ours.error()};
  ++count_.runs;
  const News news =
      *ours ? compare(**ours, sqlite3_column_int64(row, kLastAt), end_ns) : News::kNew;
  if (news == News::kSame) {
    run_ids_[from] = (*ours)->run_id;
    return Done{};
  }
  if (news == News::kOlder) {
    run_ids_[from] = (*ours)->run_id;
    return copy_children(from, (*ours)->run_id, false);
  }
  auto to = write_run(row, *ours);
  if (!to) return Error{to.error()};
  run_ids_[from] = *to;
  ++count_.changed;
  return copy_children(from, *to, true);
}

Status NodeMerge::merge_notices() {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(node_,
                         "SELECT run_id, cluster, job_id, restart_count, step, node, time_ns, code,"
                         " text FROM main.notice ORDER BY rowid",
                         -1, &raw, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(node_)};
  }
  Statement row(raw);
  auto insert = cluster_.prepare("INSERT OR IGNORE INTO notice VALUES(?,?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  while (row.step()) {
    for (int i = 0; i < 9; ++i) bind_value(*insert, i + 1, raw, i);
    if (const auto run = row.maybe_integer(0)) {
      const auto found = run_ids_.find(*run);
      if (found == run_ids_.end()) {
        insert->bind_null(1);
      } else {
        insert->bind(1, found->second);
      }
    }
    if (auto written = insert->run(); !written) return written;
    count_.rows += cluster_.changes();
  }
  return row.status();
}

std::optional<std::string> meta(sqlite3* node, const char* key) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(node, "SELECT value FROM main.meta WHERE key = ?", -1, &raw, nullptr) !=
      SQLITE_OK) {
    return std::nullopt;
  }
  Statement query(raw);
  query.bind(1, key);
  return query.step() ? query.maybe_text(0) : std::nullopt;
}

struct SourceFacts {
  std::optional<std::string> node, rows_deleted, damaged;
};

SourceFacts facts_of(sqlite3* node) {
  SourceFacts facts{meta(node, "node"), meta(node, "rows_deleted"), meta(node, "damaged")};
  if (facts.node) return facts;
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(node, "SELECT node FROM main.run LIMIT 1", -1, &raw, nullptr) ==
      SQLITE_OK) {
    Statement query(raw);
    if (query.step()) facts.node = query.maybe_text(0);
  }
  return facts;
}

Status write_source(Database& cluster, const std::string& path, const SourceFacts& facts,
                    std::int64_t runs, const std::string& problem, std::int64_t now_ns) {
  auto write = cluster.prepare(
      "INSERT OR REPLACE INTO source(path, node, merged_ns, runs, rows_deleted, damaged, problem)"
      " VALUES(?,?,?,?,?,?,nullif(?,''))");
  if (!write) return Error{write.error()};
  return write->bind(1, path)
      .bind(2, facts.node)
      .bind(3, now_ns)
      .bind(4, runs)
      .bind(5, facts.rows_deleted)
      .bind(6, facts.damaged)
      .bind(7, problem)
      .run();
}

Result<MergeCount> merge_node_db(Database& cluster, const std::string& path, std::int64_t now_ns) {
  auto node = open_source_db(path);
  if (!node) return Error{node.error()};
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  auto merged = NodeMerge(cluster, node->raw.get()).run();
  if (!merged) return Error{path + " could not be read: " + merged.error()};
  if (!merged->warning.empty()) merged->warning = path + ": " + merged->warning;
  if (!node->warning.empty() && !merged->warning.empty()) merged->warning += "; ";
  merged->warning += node->warning;
  auto written =
      write_source(cluster, path, facts_of(node->raw.get()), merged->runs, merged->warning, now_ns);
  if (written) written = transaction->commit();
  if (!written) return Error{written.error()};
  return merged;
}

Result<MergeCount> merge_note(Database& cluster, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error("cannot open " + path);
  std::string bytes(4096, '\0');  // notes are at most 1 KiB
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  const auto note = parse_note(bytes);
  if (!note) return Error{path + " is not a note, or is cut short"};
  auto insert = cluster.prepare(
      "INSERT OR IGNORE INTO notice(cluster, job_id, restart_count, step, node, time_ns, code, "
      "text)"
      " VALUES(?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  auto written = insert->bind(1, note->cluster)
                     .bind(2, note->job_id)
                     .bind(3, note->restart_count)
                     .bind(4, note->step)
                     .bind(5, note->node)
                     .bind(6, note->time_ns)
                     .bind(7, note->code)
                     .bind(8, note->text)
                     .run();
  if (!written) return Error{written.error()};
  MergeCount count;
  count.rows = cluster.changes();
  return count;
}

}  // namespace

Status note_problem(Database& cluster, const std::string& path, const std::string& problem,
                    std::int64_t now_ns) {
  return write_source(cluster, path, {}, 0, problem, now_ns);
}

Result<MergeCount> merge_file(Database& cluster, const SourceFile& file, std::int64_t now_ns) {
  auto merged = file.kind == SourceFile::Kind::kNote ? merge_note(cluster, file.path)
                                                     : merge_node_db(cluster, file.path, now_ns);
  if (merged) return merged;
  if (auto noted = note_problem(cluster, file.path, merged.error(), now_ns); !noted) {
    return Error{merged.error() + "; and " + noted.error()};
  }
  return merged;
}

}  // namespace sphase
