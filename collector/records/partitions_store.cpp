// Limits of partitions into cluster.db.
#include <set>

#include "collector/records/records.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A site changes its partitions more seldom than jobs end.
constexpr std::int64_t kPartitionsKeptNs = 600 * kSecond;

Result<bool> partitions_fresh(Database& db, std::int64_t now_ns) {
  auto row = db.prepare("SELECT max(seen_ns) FROM partition_limits");
  if (!row) return Error{row.error()};
  if (!row->step()) return Error{row->status() ? "no rows" : row->status().error()};
  const Maybe seen = row->maybe_integer(0);
  return seen && *seen <= now_ns && now_ns - *seen < kPartitionsKeptNs;
}

Status write_partitions(Database& db, const std::vector<PartitionRow>& rows, std::int64_t now_ns) {
  auto forget = db.prepare("DELETE FROM partition_limits WHERE cluster = ?");
  auto write = db.prepare("INSERT OR REPLACE INTO partition_limits VALUES(?,?,?,?,?,?,?,?)");
  for (const auto* statement : {&forget, &write}) {
    if (!*statement) return Error{statement->error()};
  }
  std::set<std::string> clusters;
  for (const auto& row : rows) clusters.insert(row.cluster);
  for (const auto& name : clusters) {
    if (auto done = forget->bind(1, name).run(); !done) return done;
  }
  for (const auto& row : rows) {
    write->bind(1, row.cluster).bind(2, row.name).bind(3, row.nodes_least);
    write->bind(4, row.nodes_most).bind(5, row.time_most_s).bind(6, row.memory_most_bytes);
    if (auto done = write->bind(7, row.cpus_most).bind(8, now_ns).run(); !done) return done;
  }
  return Done{};
}

}  // namespace

Status update_partitions(Database& cluster, RecordSource& source, std::int64_t now_ns) {
  auto fresh = partitions_fresh(cluster, now_ns);
  if (!fresh) return Error{fresh.error()};
  if (*fresh) return Done{};
  auto rows = source.partitions();
  if (!rows) return Error{rows.error()};
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  if (auto written = write_partitions(cluster, *rows, now_ns); !written) return written;
  return transaction->commit();
}

}  // namespace sphase
