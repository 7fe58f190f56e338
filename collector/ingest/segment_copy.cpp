#include "collector/ingest/segment_copy.h"

#include <algorithm>

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

Result<Statement> select_from(sqlite3* from, const std::string& table, RowCopy::Present present) {
  // The newest last where it replaces, first where what is there stays.
  const std::string sql =
      "SELECT segment_id, CASE WHEN length(data) <= " + std::to_string(kMostBytes) +
      " THEN data END FROM main.segment WHERE run_id = ? AND source = '" + table +
      "' ORDER BY segment_id" + (present == RowCopy::Present::kKeep ? " DESC" : "");
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(from, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
    return Error{sqlite3_errmsg(from)};
  }
  return Statement(raw);
}

}  // namespace

Result<SegmentCopy> SegmentCopy::prepare(sqlite3* from, Database& to, const std::string& table) {
  auto columns = shared_columns(to.raw(), to.raw(), table);
  if (!columns) return Error{columns.error()};
  SegmentCopy copy(to, table, std::move(*columns));
  for (const auto present : {RowCopy::Present::kKeep, RowCopy::Present::kReplace}) {
    auto select = select_from(from, table, present);
    if (!select) return Error{select.error()};
    copy.select_[static_cast<int>(present)] = std::move(*select);
  }
  return copy;
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

Result<std::int64_t> SegmentCopy::write(const Segment& segment, std::int64_t to_run) {
  std::int64_t written = 0;
  const int last = static_cast<int>(places_.size()) + 1;
  for (std::size_t row = 0; row < segment.rows(); ++row) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      bind_cell(*insert_, static_cast<int>(i) + 1, segment.columns[places_[i]], row);
    }
    if (auto done = insert_->bind(last, to_run).run(); !done) return Error{done.error()};
    written += to_->changes();
  }
  return written;
}

Result<std::int64_t> SegmentCopy::copy(std::int64_t from_run, std::int64_t to_run,
                                       RowCopy::Present present, DamagedSegments& damaged) {
  Statement& select = *select_[static_cast<int>(present)];
  std::int64_t written = 0;
  const auto give_up = [&](const std::string& why) {
    if (damaged.count++ > 0) return;
    damaged.first = "segment " + std::to_string(select.integer(0)) + " (" + table_ + " of run " +
                    std::to_string(from_run) + "): " + why;
  };
  select.bind(1, from_run);
  while (select.step()) {
    auto segment = decode_segment(select.text_view(1));
    if (!segment) {
      give_up(segment.error());
      continue;
    }
    if (auto ready = insert_for(*segment, present); !ready) return Error{ready.error()};
    auto rows = write(*segment, to_run);
    if (rows) {
      written += *rows;
    } else if ((sqlite3_extended_errcode(to_->raw()) & 0xff) == SQLITE_CONSTRAINT) {
      give_up(rows.error());
    } else {
      return rows;
    }
  }
  if (auto read = select.status(); !read) return Error{read.error()};
  return written;
}

}  // namespace sphase
