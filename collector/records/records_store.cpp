// Starts of jobs into cluster.db: see records.h.
#include "collector/records/record_tables.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Status write_job(Database& db, const JobFacts& job, std::int64_t now_ns) {
  auto write = db.prepare(
      "INSERT INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
      " ON CONFLICT DO UPDATE SET"
      " array_job_id = coalesce(excluded.array_job_id, array_job_id),"
      " array_task_id = coalesce(excluded.array_task_id, array_task_id),"
      " het_job_id = coalesce(excluded.het_job_id, het_job_id),"
      " het_offset = coalesce(excluded.het_offset, het_offset),"
      " uid = coalesce(excluded.uid, uid), user = coalesce(excluded.user, user),"
      " account = coalesce(excluded.account, account), name = coalesce(excluded.name, name),"
      " partition = coalesce(excluded.partition, partition), qos = coalesce(excluded.qos, qos),"
      // slurmdbd alone may tell of a time that an earlier look at slurmctld was past.
      " state = CASE WHEN excluded.source = 'slurmdbd' AND ("
      "   (end_time IS NOT NULL AND excluded.end_time IS NULL) OR"
      "   (start_time IS NOT NULL AND excluded.start_time IS NULL AND excluded.end_time IS NULL))"
      "   THEN state ELSE excluded.state END,"
      " state_reason = coalesce(excluded.state_reason, state_reason),"
      // slurmdbd has 0 for a job that was cancelled, slurmctld the signal.
      " exit_code = CASE WHEN excluded.source = 'slurmdbd'"
      "   THEN coalesce(exit_code, excluded.exit_code)"
      "   ELSE coalesce(excluded.exit_code, exit_code) END,"
      " eligible_time = coalesce(excluded.eligible_time, eligible_time),"
      " start_time = coalesce(excluded.start_time, start_time),"
      " end_time = coalesce(excluded.end_time, end_time),"
      " time_limit_s = coalesce(excluded.time_limit_s, time_limit_s),"
      " suspended_s = coalesce(excluded.suspended_s, suspended_s),"
      // The first look saw the request before any resize overwrote it.
      " requested_nodes = coalesce(requested_nodes, excluded.requested_nodes),"
      " requested_cpus = coalesce(requested_cpus, excluded.requested_cpus),"
      " requested_memory = coalesce(requested_memory, excluded.requested_memory),"
      " requested_time_limit_s = coalesce(requested_time_limit_s,"
      "   excluded.requested_time_limit_s),"
      " array_tasks = excluded.array_tasks, helper_of = coalesce(excluded.helper_of, helper_of),"
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
  write->bind(at + 3, job.admin_comment).bind(at + 4, job.requested_time_limit_s);
  write->bind(at + 5, job.array_tasks).bind(at + 6, job.helper_of);
  return write->run();
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

/// slurmctld shows the present start of a requeued job alone: the one before ended when this one
/// was submitted. slurmdbd will say how.
Status end_earlier(Database& db, const JobFacts& job, const Maybe& requeued_s) {
  if (job.restart_count == 0 || !requeued_s) return Done{};
  JobFacts earlier = job;
  --earlier.restart_count;
  for (const char* table : {"allocation", "job"}) {
    auto end = db.prepare("UPDATE " + std::string(table) +
                          " SET end_time = ?5, state = 'REQUEUED' WHERE cluster = ?1 AND job_id ="
                          " ?2 AND submit_time = ?3 AND restart_count = ?4 AND end_time IS NULL AND"
                          " start_time <= ?5");
    if (!end) return Error{end.error()};
    bind_start(*end, earlier);
    if (auto done = end->bind(5, requeued_s).run(); !done) return done;
  }
  return Done{};
}

Status open_job(Database& db, const JobFacts& job) {
  auto write = db.prepare(
      "INSERT INTO open_job(cluster, job_id, since_time) VALUES(?,?,?) ON CONFLICT DO NOTHING");
  if (!write) return Error{write.error()};
  write->bind(1, job.cluster).bind(2, job.job_id).bind(3, job.submit_s.value_or(0));
  return write->run();
}

/// A job that waits as it did at the last look: most of a long queue.
Result<bool> waits_still(Database& db, const JobFacts& job) {
  if (job.state != "PENDING" || job.start_s) return false;
  auto same = db.prepare(
      "SELECT 1 FROM job JOIN open_job USING (cluster, job_id) WHERE cluster = ? AND job_id = ? AND"
      " submit_time = ? AND restart_count = ? AND state = 'PENDING' AND start_time IS NULL AND"
      " state_reason IS ? AND eligible_time IS ? AND time_limit_s IS ? AND array_tasks IS ? AND"
      " partition IS ? AND qos IS ? AND admin_comment IS ? AND source IS ?");
  if (!same) return Error{same.error()};
  bind_start(*same, job);
  same->bind(5, job.state_reason).bind(6, job.eligible_s).bind(7, job.time_limit_s);
  same->bind(8, job.array_tasks).bind(9, job.partition).bind(10, job.qos);
  const bool waits = same->bind(11, job.admin_comment).bind(12, job.source).step();
  if (!waits && !same->status()) return Error{same->status().error()};
  return waits;
}

Status store_record(Database& db, const JobRecord& record, std::int64_t now_ns) {
  JobFacts job = record.facts;
  auto same = waits_still(db, job);
  if (!same) return Error{same.error()};
  if (*same) return Done{};
  if (auto done = keep_identity(db, job); !done) return done;
  if (auto done = write_job(db, job, now_ns); !done) return done;
  if (auto done = end_earlier(db, job, record.shown_submit_s); !done) return done;
  if (auto done = store_allocations(db, job, record.allocations); !done) return done;
  if (auto done = note_suspension(db, record, job); !done) return done;
  if (auto done = note_wait(db, job, now_ns / kSecond); !done) return done;
  return open_job(db, job);
}

}  // namespace

void bind_start(Statement& to, const JobFacts& job) {
  to.bind(1, job.cluster).bind(2, job.job_id).bind(3, job.submit_s.value_or(0));
  to.bind(4, job.restart_count);
}

Status store_records(Database& cluster, const std::vector<JobRecord>& records,
                     std::int64_t now_ns) {
  auto transaction = Transaction::begin(cluster);
  if (!transaction) return Error{transaction.error()};
  for (const auto& record : records) {
    if (auto stored = store_record(cluster, record, now_ns); !stored) return stored;
  }
  return transaction->commit();
}

}  // namespace sphase
