// The allocations of a start. slurmdbd's intervals are right once it has ended them; slurmctld
// shows the present one and when it began; earlier looks knew those in between.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "collector/records/record_tables.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlackS = 2;  // both daemons note a resize, each by its own clock

std::int64_t start_of(const Allocation& allocation) { return allocation.begin_ns / kSecond; }

Status write_node(Database& db, const JobFacts& job, std::int64_t start_s,
                  const AllocatedNode& node) {
  auto write = db.prepare(
      "INSERT INTO allocation_node VALUES(?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
      " cpus = coalesce(excluded.cpus, cpus),"
      " memory_bytes = coalesce(excluded.memory_bytes, memory_bytes)");
  if (!write) return Error{write.error()};
  bind_start(*write, job);
  return write->bind(5, start_s)
      .bind(6, node.node)
      .bind(7, node.cpus)
      .bind(8, node.memory_bytes)
      .run();
}

/// Nodes of an interval that was over within the second in which this one began.
Status forget_others(Database& db, const JobFacts& job, const Allocation& allocation) {
  if (allocation.nodes.empty()) return Done{};
  std::string names;
  for (std::size_t i = 0; i < allocation.nodes.size(); ++i) names += i == 0 ? "?" : ",?";
  auto forget = db.prepare(
      "DELETE FROM allocation_node WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ? AND start_time = ? AND node NOT IN (" +
      names + ")");
  if (!forget) return Error{forget.error()};
  bind_start(*forget, job);
  forget->bind(5, start_of(allocation));
  int at = 6;
  for (const auto& node : allocation.nodes) forget->bind(at++, node.node);
  return forget->run();
}

Status write_allocation(Database& db, const JobFacts& job, const HeldAllocation& allocation) {
  auto write = db.prepare(
      "INSERT INTO allocation VALUES(?,?,?,?,?,?,?,?,?,?,?,nullif(?,'')) ON CONFLICT DO UPDATE SET"
      " end_time = coalesce(excluded.end_time, end_time),"
      " state = coalesce(excluded.state, state), nodes = coalesce(excluded.nodes, nodes),"
      " node_count = coalesce(excluded.node_count, node_count),"
      " cpus = coalesce(excluded.cpus, cpus),"
      " memory_bytes = coalesce(excluded.memory_bytes, memory_bytes),"
      " tres = coalesce(excluded.tres, tres)");
  if (!write) return Error{write.error()};
  Maybe end_s;
  if (allocation.end_ns) end_s = *allocation.end_ns / kSecond;
  bind_start(*write, job);
  write->bind(5, start_of(allocation)).bind(6, end_s).bind(7, allocation.state);
  write->bind(8, allocation.expression).bind(9, allocation.node_count).bind(10, allocation.cpus);
  write->bind(11, allocation.memory_bytes).bind(12, allocation.tres);
  if (auto written = write->run(); !written) return written;
  if (auto done = forget_others(db, job, allocation); !done) return done;
  for (const auto& node : allocation.nodes) {
    if (auto done = write_node(db, job, start_of(allocation), node); !done) return done;
  }
  return Done{};
}

/// slurmctld shows the last change of size only: what it was before may be known from an earlier
/// look, and is then closed instead of written anew. True if so.
Result<bool> close_known(Database& db, const JobFacts& job, const Allocation& before) {
  if (before.expression || !before.end_ns) return false;
  const std::int64_t end_s = *before.end_ns / kSecond;
  auto count = db.prepare(
      "SELECT count(*) FROM allocation WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ? AND start_time < ?");
  if (!count) return Error{count.error()};
  bind_start(*count, job);
  count->bind(5, end_s);
  if (!count->step() || count->integer(0) == 0) return false;
  auto close = db.prepare(
      "UPDATE allocation SET end_time = ?5, state = 'RESIZING' WHERE cluster = ?1 AND job_id = ?2"
      " AND submit_time = ?3 AND restart_count = ?4 AND start_time < ?5 AND end_time IS NULL");
  if (!close) return Error{close.error()};
  bind_start(*close, job);
  auto closed = close->bind(5, end_s).run();
  if (!closed) return Error{closed.error()};
  return true;
}

Result<std::set<std::int64_t>> known_starts(Database& db, const JobFacts& job) {
  auto row = db.prepare(
      "SELECT start_time FROM allocation WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ?");
  if (!row) return Error{row.error()};
  bind_start(*row, job);
  std::set<std::int64_t> starts;
  while (row->step()) starts.insert(row->integer(0));
  if (!row->status()) return Error{row->status().error()};
  return starts;
}

/// `to`: the same allocation under the right time; nullopt: there was none.
Status move_start(Database& db, const JobFacts& job, std::int64_t from_s, Maybe to_s) {
  for (const char* table : {"allocation", "allocation_node"}) {
    const std::string which = std::string(table) + (to_s ? " SET start_time = ?6" : "") +
                              " WHERE cluster = ?1 AND job_id = ?2 AND submit_time = ?3 AND"
                              " restart_count = ?4 AND start_time = ?5";
    auto change = db.prepare((to_s ? "UPDATE " : "DELETE FROM ") + which);
    if (!change) return Error{change.error()};
    bind_start(*change, job);
    change->bind(5, from_s);
    if (to_s) change->bind(6, *to_s);
    if (auto done = change->run(); !done) return done;
  }
  return Done{};
}

/// What slurmdbd knows better than the looks at slurmctld did while it was away: when each interval
/// began, and that there was none in the middle of one of its own.
Status correct_starts(Database& db, const JobFacts& job,
                      const std::vector<HeldAllocation>& allocations) {
  auto known = known_starts(db, job);
  if (!known) return Error{known.error()};
  std::set<std::int64_t> told;
  for (const auto& allocation : allocations) told.insert(start_of(allocation));
  for (const std::int64_t start_s : *known) {
    if (told.contains(start_s)) continue;
    const auto near = std::find_if(told.begin(), told.end(), [&](std::int64_t other) {
      return std::abs(other - start_s) <= kSlackS && !known->contains(other);
    });
    const bool inside =
        std::any_of(allocations.begin(), allocations.end(), [&](const HeldAllocation& allocation) {
          return allocation.settled && start_s > start_of(allocation) &&
                 start_s < *allocation.end_ns / kSecond;
        });
    if (near == told.end() && !inside) continue;
    const Maybe to_s = near == told.end() ? Maybe() : Maybe(*near);
    if (auto moved = move_start(db, job, start_s, to_s); !moved) return moved;
    if (to_s) known->insert(*to_s);
  }
  return Done{};
}

/// Each interval ends in a resize where the next one begins, at the latest; the last one with the
/// job. slurmdbd hears of both ends of a resize one after the other.
Status cut_overlaps(Database& db, const JobFacts& job) {
  auto cut = db.prepare(
      "UPDATE allocation AS a SET state = 'RESIZING',"
      "  end_time = min(coalesce(end_time, later.start_time), later.start_time) FROM ("
      "  SELECT start_time AS begin, lead(start_time) OVER (ORDER BY start_time) AS start_time"
      "   FROM allocation WHERE cluster = ?1 AND job_id = ?2 AND submit_time = ?3 AND"
      "   restart_count = ?4) AS later"
      " WHERE cluster = ?1 AND job_id = ?2 AND submit_time = ?3 AND restart_count = ?4 AND"
      "  a.start_time = later.begin AND later.start_time IS NOT NULL AND"
      "  (end_time IS NULL OR end_time > later.start_time OR state IS NOT 'RESIZING')");
  if (!cut) return Error{cut.error()};
  bind_start(*cut, job);
  if (auto done = cut->run(); !done || !job.end_s) return done;
  auto end = db.prepare(
      "UPDATE allocation SET end_time = max(start_time, ?5) WHERE cluster = ?1 AND job_id = ?2 AND"
      " submit_time = ?3 AND restart_count = ?4 AND end_time IS NULL");
  if (!end) return Error{end.error()};
  bind_start(*end, job);
  return end->bind(5, *job.end_s).run();
}

}  // namespace

Status store_allocations(Database& db, const JobFacts& job,
                         const std::vector<HeldAllocation>& allocations) {
  if (allocations.empty()) return Done{};
  if (job.source != "slurmctld") {
    if (auto done = correct_starts(db, job, allocations); !done) return done;
  }
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    const HeldAllocation& allocation = allocations[i];
    // Over within the second in which the next one began: it has no length, and the same key.
    if (i + 1 < allocations.size() && start_of(allocation) == start_of(allocations[i + 1]))
      continue;
    auto known = close_known(db, job, allocation);
    if (!known) return Error{known.error()};
    if (*known) continue;
    if (auto written = write_allocation(db, job, allocation); !written) return written;
  }
  return cut_overlaps(db, job);
}

}  // namespace sphase
