// Copies rows of one table from a node.db into the same table of cluster.db.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace sphase {

/// Columns that both files have in `table`, without run_id, in the order of `to`. A file of an
/// older or newer minor version may lack some or have more.
Result<std::vector<std::string>> shared_columns(sqlite3* from, sqlite3* to,
                                                const std::string& table);

/// Rows of `table` of one run, from one file to the other, under another run_id.
class RowCopy {
 public:
  /// What to do where the row is there already.
  enum class Present { kKeep, kReplace };

  static Result<RowCopy> prepare(sqlite3* from, sqlite3* to, const std::string& table,
                                 Present present);

  /// Returns how many rows were written.
  Result<std::int64_t> copy(std::int64_t from_run, std::int64_t to_run);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* raw) const { sqlite3_finalize(raw); }
  };
  using Raw = std::unique_ptr<sqlite3_stmt, Finalize>;

  RowCopy(Raw select, Raw insert, int columns)
      : select_(std::move(select)), insert_(std::move(insert)), columns_(columns) {}

  Raw select_;
  Raw insert_;
  int columns_;
};

/// "a, b, c", each name quoted and followed by `suffix`.
std::string join_columns(const std::vector<std::string>& columns, const char* suffix = "");

}  // namespace sphase
