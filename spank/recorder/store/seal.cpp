#include "spank/recorder/store/seal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/segment_cell.h"
#include "spank/recorder/store/node_db.h"

namespace sphase {
namespace {

/// What is sealed of a table. In the conditions ?1 is the run and ?2 the time until which a phase
/// has settled; a row's key is what orders it.
struct Table {
  const char* name;
  const char* key;  // columns that follow run_id
  int key_columns;
  const char* settled;  // while the run goes on; at its end every row is final
};
constexpr std::array<Table, Sealer::kTables> kAll = {{
    {"sample", "time_ns, kind", 2, "?2 = ?2"},
    {"phase", "scope, task, path, number", 4, "end_ns < ?2"},
    // Those of a phase that was sealed already; the whole task's (path '') are final with the run.
    {"counter", "scope, task, path, number, event", 5,
     "path <> '' AND ?2 = ?2 AND NOT EXISTS (SELECT 1 FROM phase p WHERE p.run_id = ?1"
     " AND p.scope = counter.scope AND p.task = counter.task AND p.path = counter.path"
     " AND p.number = counter.number)"},
}};

/// Paths may have 2.5 kB each: a segment that grows beyond this is closed.
constexpr std::size_t kMostWordBytes = 1 << 20;

/// The rows of one table and run that may be sealed now.
class Seal {
 public:
  Seal(Database& db, const Table& table, std::int64_t run_id, bool ended, std::int64_t settled_ns)
      : db_(db), table_(table), run_id_(run_id), settled_ns_(settled_ns) {
    where_ = std::string(" FROM ") + table.name + " WHERE run_id = ?1 AND " +
             (ended ? "?2 = ?2" : table.settled);
  }

  Result<std::int64_t> count() {
    auto query = db_.prepare("SELECT count(*)" + where_);
    if (!query) return Error{query.error()};
    query->bind(1, run_id_).bind(2, settled_ns_);
    if (!query->step()) return Error{query->status().error()};
    const std::int64_t rows = query->integer(0);
    return rows;
  }

  /// Moves rows into one segment. How many; the caller has begun a transaction.
  Result<std::int64_t> one(std::int64_t sealed_ns) {
    auto segment = read();
    if (!segment) return Error{segment.error()};
    const auto rows = static_cast<std::int64_t>(segment->rows());
    if (rows == 0) return rows;
    auto bytes = encode_segment(*segment);
    if (!bytes) return Error{bytes.error()};
    if (auto gone = remove(*segment); !gone) return Error{gone.error()};
    auto insert =
        db_.prepare("INSERT INTO segment(run_id, source, sealed_ns, rows, data) VALUES(?,?,?,?,?)");
    if (!insert) return Error{insert.error()};
    insert->bind(1, run_id_).bind(2, table_.name).bind(3, sealed_ns).bind(4, rows);
    if (auto written = insert->bind_blob(5, *bytes).run(); !written) return Error{written.error()};
    return rows;
  }

 private:
  Result<Segment> read() {
    auto query = db_.prepare("SELECT *" + where_ + " ORDER BY " + table_.key + " LIMIT ?3");
    if (!query) return Error{query.error()};
    query->bind(1, run_id_).bind(2, settled_ns_).bind(3, Sealer::kMostRows);
    Segment segment;
    for (int i = 1; i < query->columns(); ++i) {  // 0 is run_id, in every table
      segment.columns.emplace_back(query->name(i));
    }
    std::size_t word_bytes = 0;
    while (word_bytes < kMostWordBytes && query->step()) {
      word_bytes = 0;
      for (SegmentColumn& column : segment.columns) {
        const int at = static_cast<int>(&column - segment.columns.data()) + 1;
        if (!add_cell(*query, at, column)) {
          return Error{std::string(table_.name) + "." + column.name() + " has mixed types"};
        }
        word_bytes += column.word_bytes();
      }
    }
    if (auto read = query->status(); !read) return Error{read.error()};
    return segment;
  }

  /// Everything up to the last row that was read: the transaction lets nobody else write.
  Status remove(const Segment& segment) {
    std::string sql = std::string("DELETE") + where_ + " AND (" + table_.key + ") <= (?3";
    for (int i = 1; i < table_.key_columns; ++i) sql += ", ?" + std::to_string(i + 3);
    auto remove = db_.prepare(sql + ")");
    if (!remove) return Error{remove.error()};
    remove->bind(1, run_id_).bind(2, settled_ns_);
    for (int i = 0; i < table_.key_columns; ++i) {
      const SegmentColumn& column = segment.columns[static_cast<std::size_t>(i)];
      const std::size_t last = segment.rows() - 1;
      if (column.type() == SegmentColumn::Type::kInteger) remove->bind(i + 3, column.integer(last));
      if (column.type() == SegmentColumn::Type::kText) remove->bind(i + 3, column.text(last));
    }
    auto done = remove->run();
    if (done && db_.changes() != static_cast<std::int64_t>(segment.rows())) {
      return Error{"rows changed while they were sealed"};
    }
    return done;
  }

  Database& db_;
  const Table& table_;
  std::int64_t run_id_;
  std::int64_t settled_ns_;
  std::string where_;
};

}  // namespace

void Sealer::wrote(const Batch& batch) {
  raw_[0] += static_cast<std::int64_t>(batch.samples.size());
  raw_[1] += static_cast<std::int64_t>(batch.phases.size());
}

bool Sealer::due(std::size_t table, bool phases_sealed, std::int64_t now_ns) const {
  if (kAll[table].name == std::string_view("counter")) return phases_sealed;
  return raw_[table] >= kWorth && now_ns >= next_ns_[table];
}

Result<std::int64_t> Sealer::seal_table(Database& db, const Scope& scope, std::size_t table) {
  Seal seal(db, kAll[table], scope.run_id, scope.ended, scope.now_ns - kSettledNs);
  auto left = seal.count();
  std::int64_t sealed = 0;
  while (left && *left >= (scope.ended ? kWorthAtEnd : kWorth)) {
    last_sealed_ns_ = std::max(scope.now_ns, last_sealed_ns_ + 1);
    auto rows = seal.one(last_sealed_ns_);
    if (!rows) return rows;
    *left -= *rows;
    sealed += *rows;
  }
  if (!left) return left;
  raw_[table] = sealed > 0 ? *left : raw_[table];
  next_ns_[table] = sealed > 0 ? 0 : scope.now_ns + kPauseNs;
  return sealed;
}

Status Sealer::seal(Database& db, const Scope& scope) {
  if (!scope.ended && !due(0, false, scope.now_ns) && !due(1, false, scope.now_ns)) return Done{};
  const auto pause = [&](const std::string& why) {
    next_ns_.fill(scope.now_ns + kPauseNs);
    return Error{why};
  };
  auto transaction = Transaction::begin(db);
  if (!transaction) return pause(transaction.error());
  bool phases_sealed = false, any_sealed = false;
  for (std::size_t table = 0; table < kTables; ++table) {
    if (!scope.ended && !due(table, phases_sealed, scope.now_ns)) continue;
    auto sealed = seal_table(db, scope, table);
    if (!sealed) return pause(sealed.error());
    if (kAll[table].name == std::string_view("phase")) phases_sealed = *sealed > 0;
    any_sealed = any_sealed || *sealed > 0;
  }
  auto done = any_sealed ? note_change(db, scope.run_id) : Done{};
  if (done) done = transaction->commit();
  return done ? std::move(done) : Status(pause(done.error()));
}

}  // namespace sphase
