// Segments made by hand, and as text.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/segment.h"

namespace sphase::testing {

/// NULL (which is Cell()), an integer, a real or a text.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

inline SegmentColumn column(const std::string& name, const std::vector<Cell>& cells) {
  SegmentColumn made(name);
  for (const Cell& cell : cells) {
    bool added = true;
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      added = made.add(*integer);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      added = made.add(*real);
    } else if (const auto* text = std::get_if<std::string>(&cell)) {
      added = made.add(std::string_view(*text));
    } else {
      made.add_null();
    }
    REQUIRE(added);
  }
  return made;
}

/// segment({{"time_ns", {1, 2}}, {"kind", {"tick", Cell()}}})
inline Segment segment(const std::vector<std::pair<std::string, std::vector<Cell>>>& columns) {
  Segment made;
  for (const auto& [name, cells] : columns) made.columns.push_back(column(name, cells));
  return made;
}

inline Segment segment_of_nulls(std::size_t rows) {
  return segment({{"run", std::vector<Cell>(rows)}});
}

inline std::string cell(const SegmentColumn& column, std::size_t row) {
  if (column.is_null(row)) return "NULL";
  if (column.type() == SegmentColumn::Type::kText) return "'" + column.text(row) + "'";
  if (column.type() == SegmentColumn::Type::kReal) return std::to_string(column.real(row));
  return std::to_string(column.integer(row));
}

/// Every value, one line per column.
inline std::string dump(const Segment& segment) {
  std::string out;
  for (const SegmentColumn& column : segment.columns) {
    out += column.name() + ":";
    for (std::size_t row = 0; row < segment.rows(); ++row) out += " " + cell(column, row);
    out += "\n";
  }
  return out;
}

}  // namespace sphase::testing
