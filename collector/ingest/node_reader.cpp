#include "collector/ingest/node_reader.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <utility>

#include "common/segment_cell.h"

namespace sphase {
namespace {

constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min();
/// Rows this much older than the last sign of life that the receiver knows are read again: a commit
/// takes its rows and its time under one lock, so any overlap at all is enough.
constexpr std::int64_t kOverlapNs = 2'000'000'000;
/// A segment is smaller than what it holds, and that is at most kMaxSegmentBytes. A value that is
/// larger is not even read.
constexpr std::size_t kMostSegmentBytes = 2 * kMaxSegmentBytes;
constexpr int kSegmentsSince = 2, kChangesSince = 3;
/// Columns of our own before those of `run`, in the query of runs.
constexpr int kOursInRun = 4;

struct ChildTable {
  const char* name;
  int since;
  /// ?1 the run, ?2 rows from this time on, ?3 phases were sealed since the receiver looked.
  const char* newer;
};
/// Who marks thousands of attributes has the rest told at the end of the run.
constexpr std::array<ChildTable, 7> kChildTables = {{
    {"task", 1, "start_ns IS NULL OR start_ns >= ?2 OR end_ns >= ?2"},
    {"sample", 1, "time_ns >= ?2"},
    {"phase", 1, "end_ns IS NULL OR end_ns >= ?2"},
    {"value", 1, "time_ns >= ?2"},
    {"attribute", 1,
     "?2 < 0 OR (SELECT count(*) FROM main.attribute AS a WHERE a.run_id = ?1) <= 200"},
    {"counter", 2,
     "?2 < 0 OR path = '' OR (SELECT p.end_ns IS NULL OR p.end_ns >= ?2 FROM main.phase AS p WHERE"
     " p.run_id = ?1 AND p.scope = counter.scope AND p.task = counter.task AND"
     " p.path = counter.path AND p.number = counter.number) OR (?3 AND NOT EXISTS (SELECT 1 FROM"
     " main.phase AS p WHERE p.run_id = ?1 AND p.scope = counter.scope AND"
     " p.task = counter.task AND p.path = counter.path AND p.number = counter.number))"},
    {"notice", 1, "time_ns >= ?2"},
}};

Result<Statement> prepare_raw(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(db)};
  }
  return Statement(raw);
}

Result<std::optional<std::string>> meta(sqlite3* node, const char* key) {
  auto query = prepare_raw(node, "SELECT value FROM main.meta WHERE key = ?");
  if (!query) return Error{query.error()};
  query->bind(1, key);
  auto value = query->step() ? query->maybe_text(0) : std::nullopt;
  if (auto read = query->status(); !read) return Error{read.error()};
  return value;
}

/// All columns of table `run` that cluster.db may know, the identity first. Those of a file of any
/// version.
Result<std::string> run_columns(sqlite3* node) {
  auto row = prepare_raw(node,
                         "SELECT name FROM pragma_table_info('run') WHERE name NOT IN ('run_id',"
                         " 'change') ORDER BY cid");
  if (!row) return Error{row.error()};
  std::string names;
  while (row->step()) names += ", \"" + row->text(0) + '"';
  if (auto read = row->status(); !read) return Error{read.error()};
  return names;
}

}  // namespace

Result<NodeReader> NodeReader::prepare(sqlite3* node, std::int64_t after, SeenOf seen,
                                       std::int64_t notices_after) {
  NodeReader reader(node);
  reader.seen_ = std::move(seen);
  reader.last_notice_ = notices_after;
  reader.told_ = std::max<std::int64_t>(after, 0);
  if (auto done = reader.prepare_statements(after); !done) return Error{done.error()};
  auto facts = reader.read_facts();
  if (!facts) return Error{facts.error()};
  reader.facts_ = std::move(*facts);
  return reader;
}

Status NodeReader::prepare_statements(std::int64_t after) {
  auto version = prepare_raw(node_, "PRAGMA main.user_version");
  if (!version) return Error{version.error()};
  version_ = version->step() ? static_cast<int>(version->integer(0)) : 0;
  auto columns = run_columns(node_);
  if (!columns) return Error{columns.error()};
  // The first columns are ours; those of `run` follow.
  std::string sql = "SELECT run_id, ";
  sql += version_ >= kChangesSince ? "change" : "0";
  sql += ", coalesce(last_ns, start_ns), end_ns" + *columns + " FROM main.run";
  if (version_ >= kChangesSince) {
    sql += " WHERE change > " + std::to_string(after) + " ORDER BY change, run_id";
  } else {
    sql += " ORDER BY run_id";
  }
  auto run = prepare_raw(node_, sql);
  if (!run) return Error{run.error()};
  run_row_ = std::move(*run);
  for (const auto& table : kChildTables) {
    if (table.since > version_) continue;
    auto rows = prepare_raw(node_, std::string("SELECT * FROM main.") + table.name +
                                       " WHERE run_id = ?1 AND (?2 = ?2) AND (?3 = ?3) AND (" +
                                       table.newer + ")");
    if (!rows) return Error{rows.error()};
    children_.push_back({table.name, std::move(*rows), std::nullopt});
  }
  if (version_ < kSegmentsSince) return Done{};
  auto list = prepare_raw(node_,
                          "SELECT segment_id, source, sealed_ns FROM main.segment WHERE run_id = ?"
                          " ORDER BY segment_id");
  if (!list) return Error{list.error()};
  segment_list_ = std::move(*list);
  auto data = prepare_raw(node_,
                          "SELECT sealed_ns, data FROM main.segment WHERE segment_id = ? AND"
                          " length(data) <= " +
                              std::to_string(kMostSegmentBytes));
  if (!data) return Error{data.error()};
  segment_data_ = std::move(*data);
  return Done{};
}

Result<NodeFacts> NodeReader::read_facts() {
  NodeFacts facts;
  std::optional<std::string> node, id, change;
  for (const auto& [key, value] : {std::pair{"node", &node},
                                   {"id", &id},
                                   {"change", &change},
                                   {"rows_deleted", &facts.rows_deleted},
                                   {"damaged", &facts.damaged}}) {
    auto found = meta(node_, key);
    if (!found) return Error{found.error()};
    *value = std::move(*found);
  }
  if (!node) {
    auto row = prepare_raw(node_, "SELECT node FROM main.run LIMIT 1");
    if (row && row->step()) node = row->maybe_text(0);
  }
  facts.node = node.value_or("");
  facts.id = id.value_or("");
  file_change_ = change ? std::strtoll(change->c_str(), nullptr, 10) : 0;
  return facts;
}

/// Puts one value of a query's row into a column. What is of another type than the values before it
/// becomes NULL, and is counted.
void NodeReader::append(SegmentColumn& to, const Statement& row, int at) {
  if (row.type(at) == SQLITE_TEXT) text_bytes_ += row.text_view(at).size();
  if (add_cell(row, at, to)) return;
  to.add_null();
  ++values_refused_;
}

/// Puts one row of a query into the columns, those before `first` aside; `place` is the value of
/// the first column.
void NodeReader::append(Segment& to, const Statement& row, int first,
                        std::optional<std::int64_t> place) {
  if (to.columns.empty()) {
    if (first > 0) to.columns.emplace_back("run");
    for (int i = first; i < row.columns(); ++i) to.columns.emplace_back(row.name(i));
  }
  if (place) {
    (void)to.columns[0].add(*place);  // all of them are integers
  } else {
    to.columns[0].add_null();
  }
  for (int i = first; i < row.columns(); ++i) {
    append(to.columns[static_cast<std::size_t>(i - first) + 1], row, i);
  }
}

/// Steps to the next run that is to be told, if there is one.
Status NodeReader::begin_run() {
  if (current_ || over_) return Done{};
  if (!run_row_->step()) {
    over_ = true;
    return run_row_->status();
  }
  Current run;
  run.run_id = run_row_->integer(0);
  run.change = run_row_->integer(1);
  if (run.change > told_) told_ = run.change - 1;
  ++runs_;
  current_ = std::move(run);
  return Done{};
}

/// Which run the current one is, what the receiver has of it, and which segments it lacks;
/// `run_row_` is at it.
Status NodeReader::ask() {
  if (std::exchange(current_->going_on, true)) return Done{};
  Segment row;
  for (int i = kOursInRun; i < run_row_->columns(); ++i) {
    SegmentColumn& column = row.columns.emplace_back(run_row_->name(i));
    if (!add_cell(*run_row_, i, column)) column.add_null();
  }
  auto name = run_name(row, 0);
  if (!name) return Error{"a run has no name: one of its columns is not what it should be"};
  auto seen = seen_(*name);
  if (!seen) return Error{seen.error()};
  current_->name = std::move(*name);
  current_->seen = *seen;
  return list_segments();
}

/// Adds the current run's row to the shipment. While more of the run is to come, it tells no more
/// of how far the run is than the receiver knows already: should the rest never arrive, it is asked
/// for again.
void NodeReader::put_run(Segment& runs, bool whole) {
  const RunSeen& seen = current_->seen;
  const std::int64_t last_ns = run_row_->integer(2);
  const bool ended = !run_row_->is_null(3);
  const bool older =
      seen.known && (last_ns < seen.last_ns || (last_ns == seen.last_ns && seen.end_ns && !ended));
  if (runs.columns.empty()) {
    for (int i = kOursInRun; i < run_row_->columns(); ++i) {
      runs.columns.emplace_back(run_row_->name(i));
    }
  }
  for (int i = kOursInRun; i < run_row_->columns(); ++i) {
    SegmentColumn& column = runs.columns[static_cast<std::size_t>(i - kOursInRun)];
    const bool is_last = column.name() == "last_ns", is_end = column.name() == "end_ns";
    if (whole || older || (!is_last && !is_end)) {
      append(column, *run_row_, i);
      continue;
    }
    std::optional<std::int64_t> held;
    if (seen.known) held = is_last ? std::optional(seen.last_ns) : seen.end_ns;
    if (!held || !column.add(*held)) column.add_null();
  }
}

/// Segments that the receiver has not. Ones that have the same time as the newest that it has were
/// written by a clock that stood still, and are left to it to tell apart.
Status NodeReader::list_segments() {
  if (!segment_list_) return Done{};
  segment_list_->bind(1, current_->run_id);
  while (segment_list_->step()) {
    const auto table =
        std::find(kSealedTables.begin(), kSealedTables.end(), segment_list_->text_view(1));
    if (table == kSealedTables.end()) continue;
    const auto at = static_cast<std::uint32_t>(table - kSealedTables.begin());
    if (segment_list_->integer(2) <= current_->seen.sealed_ns[at]) continue;
    current_->segments.emplace_back(at, segment_list_->integer(0));
  }
  return segment_list_->status();
}

/// False: the shipment is full.
Result<bool> NodeReader::take_segments(Shipment& shipment) {
  for (; current_->segment < current_->segments.size(); ++current_->segment) {
    if (sealed_bytes_ >= kShipmentBytes || shipment.sealed.size() >= kShipmentSegments) {
      return false;
    }
    const auto [table, id] = current_->segments[current_->segment];
    segment_data_->bind(1, id);
    SealedRows sealed{current_->place, table, 0, ""};
    if (segment_data_->step()) {
      sealed.sealed_ns = segment_data_->integer(0);
      sealed.data = segment_data_->text(1);
    }
    if (auto read = segment_data_->run(); !read) return Error{read.error()};
    sealed_bytes_ += sealed.data.size();
    shipment.sealed.push_back(std::move(sealed));
  }
  return true;
}

/// False: the shipment is full.
Result<bool> NodeReader::take_rows() {
  const RunSeen& seen = current_->seen;
  const std::int64_t last_ns = run_row_->integer(2);
  const auto end_ns = run_row_->maybe_integer(3);
  // Known to its end: its rows came with that.
  if (seen.known && end_ns && seen.end_ns == end_ns && seen.last_ns == last_ns) return true;
  // Known to its beginning: most likely the rest of it never arrived.
  const bool started = seen.known && seen.last_ns > current_->name.start_ns;
  const bool whole = !started || end_ns || last_ns < seen.last_ns;
  for (; current_->child < children_.size(); ++current_->child) {
    Child& child = children_[current_->child];
    if (!current_->bound) {
      child.rows->bind(1, current_->run_id);
      child.rows->bind(2, whole ? kAlways : seen.last_ns - kOverlapNs);
      const bool phases_sealed =
          std::any_of(current_->segments.begin(), current_->segments.end(),
                      [](const auto& one) { return kSealedTables[one.first] == "phase"; });
      child.rows->bind(3, static_cast<std::int64_t>(phases_sealed));
      current_->bound = true;
    }
    if (!child.taken) child.taken.emplace();
    while (!is_full(*child.taken) && child.rows->step()) {
      append(*child.taken, *child.rows, 1, current_->place);
    }
    if (auto read = child.rows->status(); !read) return Error{read.error()};
    // Full to the last row: whether there is one more is found out with the next shipment.
    if (is_full(*child.taken)) return false;
    current_->bound = false;
  }
  return true;
}

bool NodeReader::is_full(const Segment& rows) const {
  return rows.rows() >= kShipmentRows || text_bytes_ >= kShipmentBytes;
}

/// What belongs to no run: notices that the plugin had to leave in a file.
Status NodeReader::take_free_notices(Shipment& shipment) {
  auto row = prepare_raw(node_,
                         "SELECT rowid, * FROM main.notice WHERE run_id IS NULL AND rowid > ?"
                         " ORDER BY rowid");
  if (!row) return Error{row.error()};
  row->bind(1, last_notice_);
  RawRows notices{"notice", {}};
  while (!is_full(notices.rows) && row->step()) {
    last_notice_ = row->integer(0);
    append(notices.rows, *row, 2, std::nullopt);
  }
  notices_read_ = !is_full(notices.rows);
  if (notices.rows.rows() > 0) shipment.raw.push_back(std::move(notices));
  return row->status();
}

/// False: the shipment is full and the current run not at its end.
Result<bool> NodeReader::fill(Shipment& shipment) {
  if (auto asked = ask(); !asked) return Error{asked.error()};
  current_->place = static_cast<std::uint32_t>(shipment.runs.rows());
  auto whole = take_segments(shipment);
  if (whole && *whole) whole = take_rows();
  if (whole) put_run(shipment.runs, *whole);
  return whole;
}

void NodeReader::finish(Shipment& shipment) {
  for (Child& child : children_) {
    if (child.taken && child.taken->rows() > 0) {
      shipment.raw.push_back({child.table, std::move(*child.taken)});
    }
    child.taken.reset();
  }
  sealed_bytes_ = text_bytes_ = 0;
  shipment.change = over_ ? std::max(file_change_, told_) : told_;
}

Result<std::optional<Shipment>> NodeReader::next() {
  if (over_) return std::optional<Shipment>();
  Shipment shipment;
  shipment.facts = facts_;
  if (!notices_read_) {
    if (auto done = take_free_notices(shipment); !done) return Error{done.error()};
  }
  while (notices_read_ && shipment.runs.rows() < kShipmentRuns && text_bytes_ < kShipmentBytes) {
    if (auto begun = begin_run(); !begun) return Error{begun.error()};
    if (!current_) break;
    auto whole = fill(shipment);
    if (!whole) return Error{whole.error()};
    if (!*whole) break;
    current_.reset();
  }
  finish(shipment);
  return std::optional(std::move(shipment));
}

}  // namespace sphase
