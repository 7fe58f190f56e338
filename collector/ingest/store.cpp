#include "collector/ingest/store.h"

#include <algorithm>

#include "collector/timeline/stored_rows.h"
#include "common/segment_cell.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr const char* kOfRun =
    " WHERE cluster = ? AND job_id = ? AND restart_count = ? AND start_ns = ? AND step = ? AND"
    " node = ?";
/// Paths remembered so as not to ask for them again.
constexpr std::size_t kMostPaths = 100'000;
/// One for each set of columns that a shipment may bring; versions of the recorder bring a few.
constexpr std::size_t kMostStatements = 200;

void bind_name(Statement& to, int at, const RunName& name) {
  to.bind(at, name.cluster).bind(at + 1, name.job_id).bind(at + 2, name.restart_count);
  to.bind(at + 3, name.start_ns).bind(at + 4, name.step).bind(at + 5, name.node);
}

bool is_constraint(Database& db) {
  return (sqlite3_extended_errcode(db.raw()) & 0xff) == SQLITE_CONSTRAINT;
}

std::string quoted(const std::vector<std::string>& columns, const char* suffix = "") {
  std::string joined;
  for (const auto& name : columns) {
    if (!joined.empty()) joined += ", ";
    joined += '"' + name + '"' + suffix;
  }
  return joined;
}

/// "?,?,?"
std::string marks(std::size_t count) {
  std::string text = "?";
  for (std::size_t i = 1; i < count; ++i) text += ",?";
  return text;
}

std::optional<std::size_t> sealed_place(std::string_view table) {
  const auto found = std::find(kSealedTables.begin(), kSealedTables.end(), table);
  if (found == kSealedTables.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kSealedTables.begin());
}

/// Samples and values are written once; the others may still change while a run goes on.
bool written_once(const std::string& table) {
  return table == "sample" || table == "value" || table == "notice";
}

/// Latest time that a segment tells of: of a sample, or of the end of a phase.
std::optional<std::int64_t> latest(const Segment& part, std::string_view table) {
  const SegmentColumn* column = part.find(table == "sample"  ? "time_ns"
                                          : table == "phase" ? "end_ns"
                                                             : "");
  std::optional<std::int64_t> last;
  for (std::size_t row = 0; column != nullptr && row < column->rows(); ++row) {
    last = std::max(last, column->maybe_integer(row));
  }
  return last;
}

}  // namespace

int Store::Shared::bind(Statement& to, int at, std::size_t row) const {
  for (const SegmentColumn* column : columns) bind_cell(to, at++, *column, row);
  return at;
}

/// Prepared once. The pointer is good until the next shipment.
Result<Statement*> Store::statement(const std::string& sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return &found->second;
  auto made = db_.prepare(sql);
  if (!made) return Error{made.error()};
  return &statements_.emplace(sql, std::move(*made)).first->second;
}

Result<std::vector<std::string>> Store::columns_of(const std::string& table) {
  const auto found = columns_.find(table);
  if (found != columns_.end()) return found->second;
  auto row = db_.prepare("SELECT name FROM pragma_table_info(?) WHERE name <> 'run_id'");
  if (!row) return Error{row.error()};
  row->bind(1, table);
  std::vector<std::string> names;
  while (row->step()) names.push_back(row->text(0));
  if (auto read = row->status(); !read) return Error{read.error()};
  columns_.emplace(table, names);
  return names;
}

Result<RunSeen> Store::seen(const RunName& name) {
  auto run = statement(std::string("SELECT run_id, coalesce(last_ns, start_ns), end_ns FROM run") +
                       kOfRun);
  if (!run) return Error{run.error()};
  bind_name(**run, 1, name);
  RunSeen seen;
  std::int64_t run_id = -1;
  if ((*run)->step()) {
    seen.known = true;
    run_id = (*run)->integer(0);
    seen.last_ns = (*run)->integer(1);
    seen.end_ns = (*run)->maybe_integer(2);
  }
  if (auto read = (*run)->run(); !read) return Error{read.error()};
  if (!seen.known) return seen;
  auto sealed =
      statement("SELECT source, max(sealed_ns) FROM segment WHERE run_id = ? GROUP BY source");
  if (!sealed) return Error{sealed.error()};
  (*sealed)->bind(1, run_id);
  while ((*sealed)->step()) {
    if (const auto table = sealed_place((*sealed)->text_view(0))) {
      seen.sealed_ns[*table] = (*sealed)->integer(1);
    }
  }
  if (auto read = (*sealed)->status(); !read) return Error{read.error()};
  return seen;
}

/// Columns that both sides have, in the order of ours.
Result<Store::Shared> Store::shared(const std::string& table, const Segment& rows) {
  auto ours = columns_of(table);
  if (!ours) return Error{ours.error()};
  Shared both;
  for (const auto& name : *ours) {
    const SegmentColumn* column = rows.find(name);
    if (column == nullptr) continue;
    both.names.push_back(name);
    both.columns.push_back(column);
  }
  if (both.names.empty()) return Error{"a shipment without columns of table " + table};
  return both;
}

/// What we know of a run, and how its row in the shipment stands to that. True: it is to be
/// written.
Result<bool> Store::look_up(const Segment& runs, std::size_t row, const RunName& name,
                            Target& target) {
  auto known = statement(
      std::string("SELECT run_id, coalesce(last_ns, start_ns), end_ns FROM run") + kOfRun);
  if (!known) return Error{known.error()};
  bind_name(**known, 1, name);
  const bool found = (*known)->step();
  if (!found) {
    auto read = (*known)->status();
    return read ? Result<bool>(true) : Error{read.error()};
  }
  target.run_id = (*known)->integer(0);
  const std::int64_t ours_ns = (*known)->integer(1);
  const auto our_end_ns = (*known)->maybe_integer(2);
  if (auto read = (*known)->run(); !read) return Error{read.error()};
  const StoredColumn last(runs, "last_ns"), end(runs, "end_ns");
  const std::int64_t last_ns = last.maybe_integer(row).value_or(name.start_ns);
  const auto end_ns = end.maybe_integer(row);
  target.older = last_ns < ours_ns || (last_ns == ours_ns && our_end_ns && !end_ns);
  return !target.older && !(last_ns == ours_ns && our_end_ns && our_end_ns == end_ns);
}

/// Writes a run's row, if it is news, and notes where its rows go.
Status Store::put_run(const Segment& runs, std::size_t row) {
  Target& target = targets_.emplace_back();
  const auto name = run_name(runs, row);
  if (!name) {
    ++count_.refused;
    return Done{};
  }
  auto news = look_up(runs, row, *name, target);
  if (!news) return Error{news.error()};
  if (!*news) return Done{};
  auto both = shared("run", runs);
  if (!both) return Error{both.error()};
  const bool known = target.run_id >= 0;
  auto write =
      statement(known ? "UPDATE run SET " + quoted(both->names, " = ?") + " WHERE run_id = ?"
                      : "INSERT INTO run(" + quoted(both->names) + ") VALUES(" +
                            marks(both->names.size()) + ")");
  if (!write) return Error{write.error()};
  const int next = both->bind(**write, 1, row);
  if (known) (*write)->bind(next, target.run_id);
  auto written = (*write)->run();
  if (!written && !is_constraint(db_)) return written;
  if (!written) {
    ++count_.refused;
    target.run_id = -1;
    return Done{};
  }
  if (!known) target.run_id = db_.last_rowid();
  ++count_.changed;
  return Done{};
}

Result<std::optional<std::int64_t>> Store::sealed_until(std::int64_t run_id) {
  auto query = statement("SELECT max(last_ns) FROM segment WHERE run_id = ? AND source = 'sample'");
  if (!query) return Error{query.error()};
  (*query)->bind(1, run_id);
  auto until = (*query)->step() ? (*query)->maybe_integer(0) : std::nullopt;
  if (auto read = (*query)->run(); !read) return Error{read.error()};
  return until;
}

Status Store::read_sealed_keys(Target& target, std::size_t table) {
  if (std::exchange(target.looked[table], true)) return Done{};
  auto query = statement("SELECT data FROM segment WHERE run_id = ? AND source = ?");
  if (!query) return Error{query.error()};
  (*query)->bind(1, target.run_id).bind(2, kSealedTables[table]);
  while ((*query)->step()) {
    auto part = decode_segment((*query)->text_view(0));
    if (!part) continue;  // its rows are missing, and that is said where they are read
    for (std::size_t row = 0; row < part->rows(); ++row) {
      target.sealed_keys[table].insert(row_key(*part, kSealedTables[table], row));
    }
  }
  return (*query)->status();
}

/// False for a raw row that is sealed already: a copy of the file from before tells it again.
Result<bool> Store::wanted(const RawRows& raw, std::size_t row, Target& target) {
  if (raw.table == "sample") {
    if (!std::exchange(target.looked[0], true)) {
      auto until = sealed_until(target.run_id);
      if (!until) return Error{until.error()};
      target.sealed_until_ns = *until;
    }
    const SegmentColumn* time = raw.rows.find("time_ns");
    const auto time_ns = time != nullptr ? time->maybe_integer(row) : std::nullopt;
    // At the very time of the last sealed one there may be another, of another kind.
    return !target.sealed_until_ns || !time_ns || *time_ns >= *target.sealed_until_ns;
  }
  const auto table = sealed_place(raw.table);
  if (!table || !target.older) return true;
  if (auto read = read_sealed_keys(target, *table); !read) return Error{read.error()};
  return !target.sealed_keys[*table].contains(row_key(raw.rows, raw.table, row));
}

Status Store::note_path(std::int64_t run_id, const std::string& path) {
  if (paths_.size() > kMostPaths) paths_.clear();
  if (!paths_.emplace(run_id, path).second) return Done{};
  auto insert = statement("INSERT OR IGNORE INTO phase_path VALUES(?,?)");
  if (!insert) return Error{insert.error()};
  return (*insert)->bind(1, run_id).bind(2, path).run();
}

/// Where a raw row goes. nullptr: nowhere, it is refused.
Store::Target* Store::target_of(const SegmentColumn& place, std::size_t row,
                                const std::string& table) {
  const auto at = place.maybe_integer(row);
  if (!at) return table == "notice" ? &no_run_ : nullptr;
  if (*at < 0 || *at >= static_cast<std::int64_t>(targets_.size())) return nullptr;
  Target& target = targets_[static_cast<std::size_t>(*at)];
  return target.run_id >= 0 ? &target : nullptr;
}

Status Store::put_raw_row(const RawRows& raw, std::size_t row, const Shared& both, Target& target,
                          Statement& insert) {
  auto wants = wanted(raw, row, target);
  if (!wants) return Error{wants.error()};
  if (!*wants) return Done{};
  if (target.run_id >= 0) {
    insert.bind(1, target.run_id);
  } else {
    insert.bind_null(1);
  }
  both.bind(insert, 2, row);
  auto written = insert.run();
  if (!written && !is_constraint(db_)) return written;
  if (!written) {
    ++count_.refused;
    return Done{};
  }
  count_.rows += db_.changes();
  if (raw.table != "phase") return Done{};
  return note_path(target.run_id, StoredColumn(raw.rows, "path").text(row));
}

Status Store::put_raw(const RawRows& raw) {
  auto both = shared(raw.table, raw.rows);
  if (!both) return Error{both.error()};
  const SegmentColumn* place = raw.rows.find("run");
  if (place == nullptr) return Error{"rows of table " + raw.table + " that are of no run"};
  const std::string into = " INTO " + raw.table + "(run_id, " + quoted(both->names) + ") VALUES(" +
                           marks(both->names.size() + 1) + ")";
  auto keep = statement("INSERT OR IGNORE" + into);
  if (!keep) return Error{keep.error()};
  auto replace = statement("INSERT OR REPLACE" + into);
  if (!replace) return Error{replace.error()};
  for (std::size_t row = 0; row < raw.rows.rows(); ++row) {
    Target* const target = target_of(*place, row, raw.table);
    if (target == nullptr) {
      ++count_.refused;
      continue;
    }
    const bool once = written_once(raw.table) || target->older;
    auto done = put_raw_row(raw, row, *both, *target, once ? **keep : **replace);
    if (!done) return done;
  }
  return Done{};
}

/// Raw rows that came before their segment.
Status Store::drop_raw(const Segment& part, std::string_view table, std::int64_t run_id) {
  std::string sql = "DELETE FROM " + std::string(table) + " WHERE run_id = ?";
  const auto& keys = key_columns(table);
  // Samples are sealed in their order; which is far fewer statements.
  const bool in_order = table == "sample";
  if (in_order) {
    sql += " AND (time_ns, kind) <= (?, ?)";
  } else {
    for (const auto& key : keys) sql += " AND " + key + " = ?";
  }
  auto any = statement("SELECT 1 FROM " + std::string(table) + " WHERE run_id = ? LIMIT 1");
  if (!any) return Error{any.error()};
  const bool some = (*any)->bind(1, run_id).step();
  if (auto read = (*any)->run(); !read) return read;
  if (!some) return Done{};
  auto drop = statement(sql);
  if (!drop) return Error{drop.error()};
  for (std::size_t row = in_order ? part.rows() - 1 : 0; row < part.rows(); ++row) {
    (*drop)->bind(1, run_id);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      bind_cell(**drop, static_cast<int>(i) + 2, *part.find(keys[i]), row);
    }
    if (auto dropped = (*drop)->run(); !dropped) return dropped;
  }
  return Done{};
}

Status Store::note_damaged(const SealedRows& sealed, std::int64_t run_id, const std::string& why) {
  const std::string text = "rows of table " + std::string(kSealedTables[sealed.table]) +
                           " are missing: a segment of the node's file could not be read: " + why;
  if (count_.damaged++ == 0) count_.first_damage = text;
  auto insert = statement(
      "INSERT OR IGNORE INTO notice(run_id, cluster, job_id, restart_count, step, node, time_ns,"
      " code, text) SELECT run_id, cluster, job_id, restart_count, step, node, ?, ?, ? FROM run"
      " WHERE run_id = ?");
  if (!insert) return Error{insert.error()};
  (*insert)->bind(1, sealed.sealed_ns).bind(2, notice::kDamagedRows).bind(3, text);
  return (*insert)->bind(4, run_id).run();
}

Status Store::put_sealed(const SealedRows& sealed) {
  if (sealed.run >= targets_.size() || sealed.table >= kSealedTables.size() ||
      targets_[sealed.run].run_id < 0) {
    ++count_.refused;
    return Done{};
  }
  Target& target = targets_[sealed.run];
  const std::string_view table = kSealedTables[sealed.table];
  auto part = decode_segment(sealed.data);
  const bool readable = part && part->rows() > 0 && has_keys(*part, table);
  if (!readable) {
    return note_damaged(sealed, target.run_id, part ? "it has no rows of it" : part.error());
  }
  auto insert = statement(
      "INSERT OR IGNORE INTO segment(run_id, source, sealed_ns, rows, last_ns, data)"
      " VALUES(?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  (*insert)->bind(1, target.run_id).bind(2, table).bind(3, sealed.sealed_ns);
  (*insert)->bind(4, static_cast<std::int64_t>(part->rows())).bind(5, latest(*part, table));
  if (auto written = (*insert)->bind_blob(6, sealed.data).run(); !written) return written;
  if (db_.changes() == 0) return Done{};  // it was there
  count_.rows += static_cast<std::int64_t>(part->rows());
  const SegmentColumn* path = table == "phase" ? part->find("path") : nullptr;
  for (std::size_t row = 0; path != nullptr && row < part->rows(); ++row) {
    if (auto noted = note_path(target.run_id, path->text(row)); !noted) return noted;
  }
  return target.older && table != "sample" ? Status(Done{}) : drop_raw(*part, table, target.run_id);
}

Status Store::put(const Shipment& shipment) {
  targets_.clear();
  if (statements_.size() > kMostStatements) statements_.clear();
  for (std::size_t row = 0; row < shipment.runs.rows(); ++row) {
    if (auto done = put_run(shipment.runs, row); !done) return done;
    ++count_.runs;
  }
  // Segments first: what is raw beside them was changed later, or is left over.
  for (const SealedRows& sealed : shipment.sealed) {
    if (auto done = put_sealed(sealed); !done) return done;
  }
  for (const RawRows& raw : shipment.raw) {
    if (auto done = put_raw(raw); !done) return done;
  }
  return Done{};
}

}  // namespace sphase
