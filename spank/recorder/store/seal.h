// Turns the older raw rows of a run into segments, a fifth of their size.
#pragma once

#include <array>
#include <cstdint>

#include "common/sqlite_db.h"
#include "spank/recorder/store/run_rows.h"

namespace sphase {

/// One per run and node.db. Only the store thread uses it.
class Sealer {
 public:
  struct Scope {
    std::int64_t run_id = 0;
    bool ended = false;  // the run is over: all its rows are final
    std::int64_t now_ns = 0;
  };

  /// Rows that were committed: they are raw now. Cost: none.
  void wrote(const Batch& batch);
  /// Seals what is worth it, in one transaction of its own: the rows are safe in the file before
  /// it, and stay raw if it fails, which is tried again after kPauseNs.
  /// Cost: nothing in most seconds; 3 ms per 1000 rows when there is something to seal; at the
  /// end of a run with 200 phases a second 24 to 46 ms.
  Status seal(Database& db, const Scope& scope);

  /// Raw rows of a table that are worth a segment while the run goes on. More compress better (by
  /// 3 % from 512 to 1024 rows of `sample`), but lie raw for longer.
  static constexpr std::int64_t kWorth = 512;
  /// At the end of a run: fewer rows hardly take less as a segment (16 samples: 29 B each, 512: 12
  /// B).
  static constexpr std::int64_t kWorthAtEnd = 16;
  /// Rows in one segment at most. Bounds memory (1 MB), and the time for which the file is held.
  static constexpr std::int64_t kMostRows = 4096;
  /// A phase that ended so long ago is not likely to be reopened by a slower thread. If it is, its
  /// new row is written raw and wins (segment.sql).
  static constexpr std::int64_t kSettledNs = 30'000'000'000;
  /// After a failure, and where too few of the raw rows were final.
  static constexpr std::int64_t kPauseNs = 10'000'000'000;

  static constexpr std::size_t kTables = 3;

 private:
  bool due(std::size_t table, bool phases_sealed, std::int64_t now_ns) const;
  Result<std::int64_t> seal_table(Database& db, const Scope& scope, std::size_t table);

  std::array<std::int64_t, kTables> raw_{};  // rows written since the last look, and left then
  std::array<std::int64_t, kTables> next_ns_{};
  std::int64_t last_sealed_ns_ = 0;
};

}  // namespace sphase
