// Copies the sealed rows of one table from a node.db into the same table of cluster.db.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/row_copy.h"
#include "common/segment.h"
#include "common/sqlite_db.h"

namespace sphase {

/// Segments that could not be read. The other rows are merged.
struct DamagedSegments {
  std::int64_t count = 0;
  std::string first;  // a sentence about the first one
};

class SegmentCopy {
 public:
  static Result<SegmentCopy> prepare(sqlite3* from, Database& to, const std::string& table);

  /// Returns how many rows were written. Where a row is in several segments the newest one wins,
  /// whatever is to be done with a row that was there before (`present`).
  /// Cost: 2 µs per row, of which decoding is a tenth.
  Result<std::int64_t> copy(std::int64_t from_run, std::int64_t to_run, RowCopy::Present present,
                            DamagedSegments& damaged);

 private:
  SegmentCopy(Database& to, std::string table, std::vector<std::string> columns)
      : to_(&to), table_(std::move(table)), columns_(std::move(columns)) {}

  Status insert_for(const Segment& segment, RowCopy::Present present);
  Result<std::int64_t> write(const Segment& segment, std::int64_t to_run);

  Database* to_;
  std::string table_;
  std::vector<std::string> columns_;    // of cluster.db's table, without run_id
  std::optional<Statement> select_[2];  // [present]
  std::optional<Statement> insert_;
  std::string insert_sql_;
  std::vector<std::size_t> places_;  // [column of insert_ after run_id]: column of the segment
};

}  // namespace sphase
