// All rows of one table of one run, sealed or not, as columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/segment.h"
#include "common/sqlite_db.h"

namespace sphase {

/// Rows [first row of `row`] of a query, as columns without those before `first`. Text and numbers
/// alike; a column whose rows are of different types fails, which SQLite allows but we never write.
/// `row` has been bound and not yet stepped. At most `most` rows.
Result<Segment> rows_of(Statement& row, int first, std::size_t most);

/// One column of a part; a part made by an older program may lack it, which reads as NULL.
class StoredColumn {
 public:
  StoredColumn(const Segment& part, std::string_view name) : column_(part.find(name)) {}

  std::optional<std::int64_t> maybe_integer(std::size_t row) const {
    return column_ != nullptr ? column_->maybe_integer(row) : std::nullopt;
  }
  std::int64_t integer(std::size_t row) const { return maybe_integer(row).value_or(0); }
  /// "" for NULL.
  const std::string& text(std::size_t row) const;

 private:
  const SegmentColumn* column_;
};

/// Columns that, with run_id, are the key of table "sample", "phase" or "counter".
const std::vector<std::string>& key_columns(std::string_view table);

/// True if its rows could stand in that table: of each key column a value of the column's own type.
bool has_keys(const Segment& part, std::string_view table);

/// The key of a row as one text, for comparing; all key columns are there.
std::string row_key(const Segment& part, std::string_view table, std::size_t row);

/// A row in one of several parts.
struct RowAt {
  std::size_t part, row;
};

/// Of all rows with one key the last, in the order of the parts. Cost: 0.2 µs per row where there
/// are several parts, nothing to speak of for one.
std::vector<RowAt> rows_that_count(const std::vector<Segment>& parts, std::string_view table);

class StoredRows {
 public:
  /// `table`: "sample", "phase" or "counter".
  static Result<StoredRows> prepare(Database& db, const std::string& table);

  /// Parts in the order of sealing, then the rows that are not sealed: see rows_that_count.
  /// `unreadable` is increased by the segments that could not be read.
  /// Cost: 0.1 µs per sealed row of `sample`, 1 µs per other one.
  Result<std::vector<Segment>> of_run(std::int64_t run_id, std::int64_t& unreadable);

 private:
  StoredRows(std::string table, Statement sealed, Statement raw)
      : table_(std::move(table)), sealed_(std::move(sealed)), raw_(std::move(raw)) {}

  std::string table_;
  Statement sealed_, raw_;
};

}  // namespace sphase
