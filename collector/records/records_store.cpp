// Records into cluster.db, and which ones to ask for: see records.h.
#include <algorithm>
#include <set>

#include "collector/records/records.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// Rows that ended this long before the first run may be earlier intervals of the same job.
constexpr std::int64_t kBeforeS = 7 * 86400;

Status write_job(Database& db, const JobFacts& job, std::int64_t now_ns) {
  auto write = db.prepare(
      "INSERT INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
      " ON CONFLICT DO UPDATE SET"
      " array_job_id = coalesce(excluded.array_job_id, array_job_id),"
      " array_task_id = coalesce(excluded.array_task_id, array_task_id),"
      " het_job_id = coalesce(excluded.het_job_id, het_job_id),"
      " het_offset = coalesce(excluded.het_offset, het_offset),"
      " uid = coalesce(excluded.uid, uid), user = coalesce(excluded.user, user),"
      " account = coalesce(excluded.account, account), name = coalesce(excluded.name, name),"
      " partition = coalesce(excluded.partition, partition), qos = coalesce(excluded.qos, qos),"
      " state = excluded.state,"
      " state_reason = coalesce(excluded.state_reason, state_reason),"
      " exit_code = coalesce(excluded.exit_code, exit_code),"
      " eligible_time = coalesce(eligible_time, excluded.eligible_time),"
      " start_time = coalesce(excluded.start_time, start_time),"
      " end_time = coalesce(excluded.end_time, end_time),"
      " time_limit_s = coalesce(excluded.time_limit_s, time_limit_s),"
      " suspended_s = coalesce(excluded.suspended_s, suspended_s),"
      // The first look saw the request before any resize overwrote it.
      " requested_nodes = coalesce(requested_nodes, excluded.requested_nodes),"
      " requested_cpus = coalesce(requested_cpus, excluded.requested_cpus),"
      " requested_memory = coalesce(requested_memory, excluded.requested_memory),"
      " source = CASE WHEN source = excluded.source THEN source ELSE 'slurmctld+slurmdbd' END,"
      " seen_ns = excluded.seen_ns,"
      " admin_comment = coalesce(excluded.admin_comment, admin_comment)");
  if (!write) return Error{write.error()};
  write->bind(1, job.cluster).bind(2, job.job_id).bind(3, job.restart_count);
  write->bind(4, job.submit_s.value_or(0));
  int at = 5;
  for (const Maybe& number :
       {job.array_job_id, job.array_task_id, job.het_job_id, job.het_offset, job.uid}) {
    write->bind(at++, number);
  }
  for (const MaybeText& text :
       {job.user, job.account, job.name, job.partition, job.qos, job.state, job.state_reason}) {
    write->bind(at++, text);
  }
  for (const Maybe& number :
       {job.exit_code, job.eligible_s, job.start_s, job.end_s, job.time_limit_s, job.suspended_s,
        job.requested_nodes, job.requested_cpus}) {
    write->bind(at++, number);
  }
  write->bind(at, job.requested_memory).bind(at + 1, job.source).bind(at + 2, now_ns);
  write->bind(at + 3, job.admin_comment);
  return write->run();
}

void bind_start(Statement& to, const JobFacts& job) {
  to.bind(1, job.cluster).bind(2, job.job_id).bind(3, job.submit_s.value_or(0));
  to.bind(4, job.restart_count);
}

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

Status write_allocation(Database& db, const JobFacts& job, const Allocation& allocation,
                        const std::string& tres) {
  auto write = db.prepare(
      "INSERT INTO allocation VALUES(?,?,?,?,?,?,?,?,?,?,?,nullif(?,'')) ON CONFLICT DO UPDATE SET"
      " end_time = coalesce(excluded.end_time, end_time),"
      " state = coalesce(excluded.state, state), nodes = coalesce(excluded.nodes, nodes),"
      " node_count = coalesce(excluded.node_count, node_count),"
      " cpus = coalesce(excluded.cpus, cpus),"
      " memory_bytes = coalesce(excluded.memory_bytes, memory_bytes),"
      " tres = coalesce(excluded.tres, tres)");
  if (!write) return Error{write.error()};
  const std::int64_t start_s = allocation.begin_ns / kSecond;
  Maybe end_s;
  if (allocation.end_ns) end_s = *allocation.end_ns / kSecond;
  bind_start(*write, job);
  auto written = write->bind(5, start_s)
                     .bind(6, end_s)
                     .bind(7, allocation.state)
                     .bind(8, allocation.expression)
                     .bind(9, allocation.node_count)
                     .bind(10, allocation.cpus)
                     .bind(11, allocation.memory_bytes)
                     .bind(12, tres)
                     .run();
  if (!written) return written;
  for (const auto& node : allocation.nodes) {
    if (auto done = write_node(db, job, start_s, node); !done) return done;
  }
  return Done{};
}

/// Gives a start the identity under which an earlier look stored it. What a daemon shows changes
/// (slurmctld forgets the first submission at a requeue, old rows are purged from slurmdbd), the
/// time when the job started does not.
Status keep_identity(Database& db, JobFacts& job) {
  auto same = db.prepare(
      "SELECT submit_time, restart_count FROM job WHERE cluster = ? AND job_id = ? AND"
      " start_time = ? LIMIT 1");
  if (!same) return Error{same.error()};
  same->bind(1, job.cluster).bind(2, job.job_id).bind(3, job.start_s);
  if (same->step()) {
    job.submit_s = same->integer(0);
    job.restart_count = same->integer(1);
    return Done{};
  }
  if (job.source != "slurmctld" || job.restart_count == 0) return same->status();
  auto earlier = db.prepare(
      "SELECT submit_time FROM job WHERE cluster = ? AND job_id = ? AND uid IS ? AND"
      " restart_count < ? AND submit_time <= ? ORDER BY submit_time DESC, restart_count DESC"
      " LIMIT 1");
  if (!earlier) return Error{earlier.error()};
  earlier->bind(1, job.cluster).bind(2, job.job_id).bind(3, job.uid).bind(4, job.restart_count);
  earlier->bind(5, job.submit_s);
  if (earlier->step()) job.submit_s = earlier->integer(0);
  return earlier->status();
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

struct Asked {
  RecordQuery query;
  std::vector<Witness> witnesses;
};

/// Jobs that runs or notices mention and that are not known to have ended.
Result<Asked> what_to_ask(Database& db) {
  auto row = db.prepare(
      "WITH mention(cluster, job_id, restart_count, at) AS ("
      "  SELECT cluster, job_id, restart_count, start_ns / 1000000000 FROM run UNION"
      "  SELECT cluster, job_id, restart_count, time_ns / 1000000000 FROM notice),"
      // Seen well after its end by both daemons' standards: nothing more will come.
      " settled(cluster, job_id, ended) AS ("
      "  SELECT cluster, job_id, max(end_time) FROM job GROUP BY cluster, job_id"
      "  HAVING max(end_time IS NULL) = 0 AND max(seen_ns / 1000000000) - max(end_time) > 600)"
      " SELECT cluster, job_id, restart_count, at FROM mention WHERE (cluster, job_id) IN ("
      "  SELECT cluster, job_id FROM mention LEFT JOIN settled USING (cluster, job_id)"
      "  WHERE ended IS NULL OR at > ended + 2)");
  if (!row) return Error{row.error()};
  Asked asked;
  std::set<std::string> clusters;
  std::set<std::int64_t> ids;
  while (row->step()) {
    const Witness witness{row->text(0), row->integer(1), row->integer(2), row->integer(3)};
    clusters.insert(witness.cluster);
    ids.insert(witness.job_id);
    const std::int64_t since = witness.begin_s - kBeforeS;
    asked.query.since_s = asked.witnesses.empty() ? since : std::min(asked.query.since_s, since);
    asked.witnesses.push_back(witness);
  }
  if (!row->status()) return Error{row->status().error()};
  asked.query.clusters.assign(clusters.begin(), clusters.end());
  asked.query.job_ids.assign(ids.begin(), ids.end());
  return asked;
}

/// The daemons answer by number; the same number in another cluster was not asked for.
void keep_asked(std::vector<JobRow>& rows, const std::vector<Witness>& witnesses) {
  std::set<std::pair<std::string, std::int64_t>> asked;
  for (const auto& witness : witnesses) asked.emplace(witness.cluster, witness.job_id);
  std::erase_if(rows, [&](const JobRow& row) {
    return !asked.contains({row.facts.cluster, row.facts.job_id});
  });
}

}  // namespace

Status store_records(Database& cluster, const std::vector<JobRecord>& records,
                     std::int64_t now_ns) {
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  for (const auto& record : records) {
    JobFacts job = record.facts;
    if (auto kept = keep_identity(cluster, job); !kept) return kept;
    if (auto written = write_job(cluster, job, now_ns); !written) return written;
    for (std::size_t i = 0; i < record.allocations.size(); ++i) {
      auto known = close_known(cluster, job, record.allocations[i]);
      if (!known) return Error{known.error()};
      if (*known) continue;
      auto written = write_allocation(cluster, job, record.allocations[i], record.tres[i]);
      if (!written) return written;
    }
  }
  return transaction->commit();
}

Result<RecordOutcome> update_records(Database& cluster, RecordSource& source, std::int64_t now_ns) {
  auto asked = what_to_ask(cluster);
  if (!asked) return Error{asked.error()};
  RecordOutcome outcome;
  if (asked->query.job_ids.empty()) return outcome;
  auto live = source.from_slurmctld(asked->query);
  if (!live) outcome.warnings.push_back(live.error());
  auto kept = source.from_slurmdbd(asked->query);
  if (!kept) outcome.warnings.push_back(kept.error());
  if (live) {
    auto limits = update_partitions(cluster, source, now_ns);
    if (!limits) outcome.warnings.push_back("partitions: " + limits.error());
  }
  std::vector<JobRow> now = live ? std::move(*live) : std::vector<JobRow>();
  std::vector<JobRow> before = kept ? std::move(*kept) : std::vector<JobRow>();
  keep_asked(now, asked->witnesses);
  keep_asked(before, asked->witnesses);
  const auto records = assemble_records(now, before, asked->witnesses);
  if (auto stored = store_records(cluster, records, now_ns); !stored) return Error{stored.error()};
  outcome.jobs = static_cast<std::int64_t>(records.size());
  return outcome;
}

namespace {

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
