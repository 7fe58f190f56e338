#include "collector/retention.h"

#include <limits>

namespace sphase {
namespace {

constexpr std::int64_t kDayNs = 86'400'000'000'000;
/// What one transaction gives up at most.
constexpr std::int64_t kSegments = 500, kRuns = 200;

Result<std::int64_t> pragma(Database& db, const char* name) {
  auto query = db.prepare(std::string("PRAGMA ") + name);
  if (!query) return Error{query.error()};
  const std::int64_t value = query->step() ? query->integer(0) : 0;
  if (auto read = query->run(); !read) return Error{read.error()};
  return value;
}

Result<std::int64_t> bytes_in_use(Database& db) {
  std::int64_t values[3];
  const char* const names[] = {"page_count", "freelist_count", "page_size"};
  for (int i = 0; i < 3; ++i) {
    auto value = pragma(db, names[i]);
    if (!value) return value;
    values[i] = *value;
  }
  return (values[0] - values[1]) * values[2];
}

/// Empties the oldest segments of samples that end before `until_ns`. How many rows went; 0: none.
Result<std::int64_t> empty_segments(Database& db, std::int64_t until_ns) {
  const std::string oldest =
      "(SELECT segment_id FROM segment WHERE source = 'sample' AND last_ns < ?1 AND last_ns IS NOT"
      " NULL ORDER BY last_ns LIMIT " +
      std::to_string(kSegments) + ")";
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto count =
      db.prepare("SELECT coalesce(sum(rows), 0) FROM segment WHERE segment_id IN " + oldest);
  if (!count) return Error{count.error()};
  const std::int64_t rows = count->bind(1, until_ns).step() ? count->integer(0) : 0;
  if (auto read = count->run(); !read) return Error{read.error()};
  auto empty = db.prepare(
      "UPDATE segment SET rows = 0, data = x'', last_ns = NULL WHERE segment_id"
      " IN " +
      oldest);
  if (!empty) return Error{empty.error()};
  if (auto done = empty->bind(1, until_ns).run(); !done) return Error{done.error()};
  if (auto done = transaction->commit(); !done) return Error{done.error()};
  return rows;
}

/// Deletes samples that were never sealed, of runs that ended before. How many; 0: none.
Result<std::int64_t> delete_raw(Database& db, std::int64_t until_ns) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto remove = db.prepare(
      "DELETE FROM sample WHERE run_id IN (SELECT run_id FROM run WHERE coalesce(end_ns, last_ns,"
      " start_ns) < ? AND EXISTS (SELECT 1 FROM sample AS s WHERE s.run_id = run.run_id) LIMIT " +
      std::to_string(kRuns) + ")");
  if (!remove) return Error{remove.error()};
  if (auto done = remove->bind(1, until_ns).run(); !done) return Error{done.error()};
  const std::int64_t rows = db.changes();
  if (auto done = transaction->commit(); !done) return Error{done.error()};
  return rows;
}

}  // namespace

Result<Retired> retire(Database& db, const Retention& retention, std::int64_t now_ns) {
  Retired retired;
  if (retention.sample_days > 0) {
    const std::int64_t until_ns = now_ns - retention.sample_days * kDayNs;
    for (auto* give_up : {&empty_segments, &delete_raw}) {
      for (std::int64_t more = 1; more > 0;) {
        auto rows = give_up(db, until_ns);
        if (!rows) return Error{rows.error()};
        retired.samples += more = *rows;
      }
    }
  }
  for (std::int64_t before = std::numeric_limits<std::int64_t>::max();;) {
    auto bytes = bytes_in_use(db);
    if (!bytes) return Error{bytes.error()};
    retired.bytes = *bytes;
    if (retention.most_bytes <= 0 || *bytes <= retention.most_bytes) return retired;
    // What freed no page at all will not free one a moment later either.
    retired.still_too_large = *bytes >= before;
    if (retired.still_too_large) return retired;
    before = *bytes;
    auto rows = empty_segments(db, std::numeric_limits<std::int64_t>::max());
    if (!rows) return Error{rows.error()};
    retired.samples += *rows;
    retired.still_too_large = *rows == 0;
    if (*rows == 0) return retired;
  }
}

}  // namespace sphase
