#include "collector/ingest/segment_copy.h"

#include <algorithm>
#include <set>

#include "common/vocabulary.h"

namespace sphase {
namespace {

/// A segment is smaller than what it holds, and that is at most kMaxSegmentBytes.
constexpr std::size_t kMostBytes = 2 * kMaxSegmentBytes;

void bind_cell(Statement& insert, int index, const SegmentColumn& column, std::size_t row) {
  if (column.is_null(row)) {
    insert.bind_null(index);
    return;
  }
  switch (column.type()) {
    case SegmentColumn::Type::kInteger:
      insert.bind(index, column.integer(row));
      break;
    case SegmentColumn::Type::kReal:
      insert.bind(index, column.real(row));
      break;
    case SegmentColumn::Type::kText:
      insert.bind(index, column.text(row));
      break;
    case SegmentColumn::Type::kNull:
      insert.bind_null(index);
      break;
  }
}

Result<Statement> prepare_raw(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(db)};
  }
  return Statement(raw);
}

}  // namespace

Result<SegmentCopy> SegmentCopy::prepare(sqlite3* from, Database& to, const std::string& table) {
  auto columns = shared_columns(to.raw(), to.raw(), table);
  if (!columns) return Error{columns.error()};
  auto list = prepare_raw(from,
                          "SELECT segment_id, sealed_ns FROM main.segment WHERE run_id = ? AND"
                          " source = '" +
                              table + "' ORDER BY segment_id");
  if (!list) return Error{list.error()};
  // A value that is too large is not even read.
  auto data = prepare_raw(from,
                          "SELECT data FROM main.segment WHERE segment_id = ? AND"
                          " length(data) <= " +
                              std::to_string(kMostBytes));
  if (!data) return Error{data.error()};
  return SegmentCopy(to, table, std::move(*columns), std::move(*list), std::move(*data));
}

Result<std::vector<SegmentCopy::Found>> SegmentCopy::not_merged(std::int64_t from_run,
                                                                std::int64_t to_run) {
  std::vector<Found> found;
  list_.bind(1, from_run);
  while (list_.step()) found.push_back({list_.integer(0), list_.integer(1)});
  if (auto read = list_.status(); !read) return Error{read.error()};
  if (found.empty()) return found;
  auto query = to_->prepare("SELECT sealed_ns FROM merged_segment WHERE run_id = ? AND source = ?");
  if (!query) return Error{query.error()};
  std::set<std::int64_t> merged;
  query->bind(1, to_run).bind(2, table_);
  while (query->step()) merged.insert(query->integer(0));
  if (auto read = query->status(); !read) return Error{read.error()};
  std::erase_if(found, [&](const Found& one) { return merged.contains(one.sealed_ns); });
  return found;
}

Result<Segment> SegmentCopy::read(std::int64_t segment_id) {
  data_.bind(1, segment_id);
  if (!data_.step()) return Error{data_.status() ? "it is too large" : data_.status().error()};
  auto segment = decode_segment(data_.text_view(0));
  while (data_.step()) {
  }
  return segment;
}

/// Prepares an insert of the columns that the segment and our table have in common.
Status SegmentCopy::insert_for(const Segment& segment, RowCopy::Present present) {
  std::vector<std::string> names;
  places_.clear();
  for (const std::string& name : columns_) {
    const auto found = std::find_if(segment.columns.begin(), segment.columns.end(),
                                    [&](const auto& column) { return column.name() == name; });
    if (found == segment.columns.end()) continue;
    names.push_back(name);
    places_.push_back(static_cast<std::size_t>(found - segment.columns.begin()));
  }
  std::string sql = present == RowCopy::Present::kKeep ? "INSERT OR IGNORE" : "INSERT OR REPLACE";
  sql += " INTO " + table_ + "(" + join_columns(names) + (names.empty() ? "" : ", ") + "run_id)";
  sql += " VALUES(";
  for (std::size_t i = 0; i < names.size(); ++i) sql += "?,";
  sql += "?)";
  if (sql == insert_sql_) return Done{};
  auto insert = to_->prepare(sql);
  if (!insert) return Error{insert.error()};
  insert_ = std::move(*insert);
  insert_sql_ = sql;
  return Done{};
}

Status SegmentCopy::write(const Segment& segment, std::int64_t to_run, std::int64_t& written) {
  const int last = static_cast<int>(places_.size()) + 1;
  for (std::size_t row = 0; row < segment.rows(); ++row) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      bind_cell(*insert_, static_cast<int>(i) + 1, segment.columns[places_[i]], row);
    }
    if (auto done = insert_->bind(last, to_run).run(); !done) return done;
    written += to_->changes();
  }
  return Done{};
}

Status SegmentCopy::note_merged(std::int64_t to_run, std::int64_t sealed_ns) {
  auto insert = to_->prepare("INSERT OR IGNORE INTO merged_segment VALUES(?,?,?)");
  if (!insert) return Error{insert.error()};
  return insert->bind(1, to_run).bind(2, table_).bind(3, sealed_ns).run();
}

Status SegmentCopy::note_damaged(const Found& segment, std::int64_t to_run, const std::string& why,
                                 DamagedSegments& damaged) {
  const std::string text = "rows of table " + table_ + " are missing: segment " +
                           std::to_string(segment.id) + " could not be read: " + why;
  if (damaged.count++ == 0) damaged.first = text;
  auto insert = to_->prepare(
      "INSERT OR IGNORE INTO notice(run_id, cluster, job_id, restart_count, step, node, time_ns,"
      " code, text) SELECT run_id, cluster, job_id, restart_count, step, node, ?, ?, ? FROM run"
      " WHERE run_id = ?");
  if (!insert) return Error{insert.error()};
  return insert->bind(1, segment.sealed_ns)
      .bind(2, notice::kDamagedRows)
      .bind(3, text)
      .bind(4, to_run)
      .run();
}

Result<std::int64_t> SegmentCopy::copy(std::int64_t from_run, std::int64_t to_run,
                                       RowCopy::Present present, DamagedSegments& damaged) {
  auto found = not_merged(from_run, to_run);
  if (!found) return Error{found.error()};
  // The newest last where it replaces, first where what is there stays.
  if (present == RowCopy::Present::kKeep) std::reverse(found->begin(), found->end());
  std::int64_t written = 0;
  for (const Found& one : *found) {
    auto segment = read(one.id);
    Status done = segment ? insert_for(*segment, present) : Done{};
    if (!done) return Error{done.error()};
    if (segment) done = write(*segment, to_run, written);
    const bool hostile =
        !done && (sqlite3_extended_errcode(to_->raw()) & 0xff) == SQLITE_CONSTRAINT;
    if (!done && !hostile) return Error{done.error()};
    done = segment && !hostile
               ? note_merged(to_run, one.sealed_ns)
               : note_damaged(one, to_run, hostile ? done.error() : segment.error(), damaged);
    if (!done) return Error{done.error()};
  }
  return written;
}

}  // namespace sphase
