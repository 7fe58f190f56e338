// One value of a query's row on its way into a column: where SQLite and segments meet.
#pragma once

#include "common/segment.h"
#include "common/sqlite_db.h"

namespace sphase {

/// False, and nothing is added, for a blob, and where the column has values of another type.
inline bool add_cell(const Statement& row, int at, SegmentColumn& column) {
  switch (row.type(at)) {
    case SQLITE_INTEGER:
      return column.add(row.integer(at));
    case SQLITE_FLOAT:
      return column.add(row.real(at));
    case SQLITE_TEXT:
      return column.add(row.text_view(at));
    case SQLITE_NULL:
      column.add_null();
      return true;
    default:
      return false;
  }
}

inline void bind_cell(Statement& to, int index, const SegmentColumn& column, std::size_t row) {
  using Type = SegmentColumn::Type;
  const Type type = column.is_null(row) ? Type::kNull : column.type();
  if (type == Type::kNull) to.bind_null(index);
  if (type == Type::kInteger) to.bind(index, column.integer(row));
  if (type == Type::kReal) to.bind(index, column.real(row));
  if (type == Type::kText) to.bind(index, column.text(row));
}

}  // namespace sphase
