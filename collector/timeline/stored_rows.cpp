#include "collector/timeline/stored_rows.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "common/segment_cell.h"

namespace sphase {
Result<Segment> rows_of(Statement& row, int first, std::size_t most) {
  Segment part;
  for (int i = first; i < row.columns(); ++i) part.columns.emplace_back(row.name(i));
  for (std::size_t rows = 0; rows < most && row.step(); ++rows) {
    for (int i = first; i < row.columns(); ++i) {
      SegmentColumn& column = part.columns[static_cast<std::size_t>(i - first)];
      if (!add_cell(row, i, column)) return Error{"column " + column.name() + " has mixed types"};
    }
  }
  if (auto read = row.status(); !read) return Error{read.error()};
  return part;
}

const std::string& StoredColumn::text(std::size_t row) const {
  static const std::string kNone;
  const bool known = column_ != nullptr && column_->type() == SegmentColumn::Type::kText;
  return known && !column_->is_null(row) ? column_->text(row) : kNone;
}

const std::vector<std::string>& key_columns(std::string_view table) {
  static const std::vector<std::string> kSample = {"time_ns", "kind"};
  static const std::vector<std::string> kPhase = {"scope", "task", "path", "number"};
  static const std::vector<std::string> kCounter = {"scope", "task", "path", "number", "event"};
  return table == "sample" ? kSample : table == "phase" ? kPhase : kCounter;
}

bool has_keys(const Segment& part, std::string_view table) {
  using Type = SegmentColumn::Type;
  return std::all_of(key_columns(table).begin(), key_columns(table).end(), [&](const auto& name) {
    const bool number = name == "time_ns" || name == "task" || name == "number";
    const SegmentColumn* column = part.find(name);
    bool whole = column != nullptr && column->type() == (number ? Type::kInteger : Type::kText);
    for (std::size_t row = 0; whole && row < column->rows(); ++row) whole = !column->is_null(row);
    return whole;
  });
}

std::string row_key(const Segment& part, std::string_view table, std::size_t row) {
  std::string key;
  for (const auto& name : key_columns(table)) {
    const StoredColumn column(part, name);
    const auto number = column.maybe_integer(row);
    key += number ? std::to_string(*number) : column.text(row);
    key += '\0';
  }
  return key;
}

std::vector<RowAt> rows_that_count(const std::vector<Segment>& parts, std::string_view table) {
  std::vector<RowAt> rows;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t row = 0; row < parts[part].rows(); ++row) {
      if (parts.size() > 1) {
        const auto [at, first] = places.try_emplace(row_key(parts[part], table, row), rows.size());
        if (!first) {
          rows[at->second] = {part, row};
          continue;
        }
      }
      rows.push_back({part, row});
    }
  }
  return rows;
}

Result<StoredRows> StoredRows::prepare(Database& db, const std::string& table) {
  auto sealed = db.prepare(
      "SELECT data FROM segment WHERE run_id = ? AND source = ? AND rows > 0"
      " ORDER BY sealed_ns");
  if (!sealed) return Error{sealed.error()};
  auto raw = db.prepare("SELECT * FROM " + table + " WHERE run_id = ?");
  if (!raw) return Error{raw.error()};
  return StoredRows(table, std::move(*sealed), std::move(*raw));
}

Result<std::vector<Segment>> StoredRows::of_run(std::int64_t run_id, std::int64_t& unreadable) {
  std::vector<Segment> parts;
  sealed_.bind(1, run_id).bind(2, table_);
  while (sealed_.step()) {
    auto part = decode_segment(sealed_.text_view(0));
    if (part) {
      parts.push_back(std::move(*part));
    } else {
      ++unreadable;
    }
  }
  if (auto read = sealed_.status(); !read) return Error{read.error()};
  raw_.bind(1, run_id);
  auto raw = rows_of(raw_, 1, std::numeric_limits<std::size_t>::max());
  if (!raw) return Error{"table " + table_ + ": " + raw.error()};
  if (raw->rows() > 0) parts.push_back(std::move(*raw));
  return parts;
}

}  // namespace sphase
