// What cluster.db does not keep for ever: samples. Phases, records and what was learned stay.
#pragma once

#include <cstdint>

#include "common/sqlite_db.h"

namespace sphase {

struct Retention {
  std::int64_t sample_days = 30;  // 0: for ever
  std::int64_t most_bytes = 0;    // of the database; 0: no limit
};

struct Retired {
  std::int64_t samples = 0;      // given up
  std::int64_t bytes = 0;        // of the database that are in use now
  bool still_too_large = false;  // and there are no samples left to give up
};

/// Gives up samples that are older than they may be, then the oldest ones while the database is too
/// large. A segment leaves a row without data behind, so that nobody brings it again. Some short
/// transactions, so that others write in between; the file does not shrink, its pages are used
/// again. Cost: 20 µs per segment, and 1 µs per run that has ended.
Result<Retired> retire(Database& db, const Retention& retention, std::int64_t now_ns);

}  // namespace sphase
