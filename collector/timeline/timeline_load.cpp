#include "collector/timeline/timeline_load.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "collector/timeline/node_clocks.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Status read_allocation_nodes(Database& db, const JobNumber& job, const RecordKey& key,
                             Allocation& allocation) {
  auto row = db.prepare(
      "SELECT node, cpus, memory_bytes FROM allocation_node WHERE cluster = ? AND job_id = ? AND"
      " submit_time = ? AND restart_count = ? AND start_time = ?");
  if (!row) return Error{row.error()};
  row->bind(1, job.cluster)
      .bind(2, job.job_id)
      .bind(3, key.submit_s)
      .bind(4, key.restart_count)
      .bind(5, allocation.begin_ns / kSecond);
  while (row->step()) {
    allocation.nodes.push_back({row->text(0), row->maybe_integer(1), row->maybe_integer(2)});
  }
  return row->status();
}

/// Binds what identifies a start to parameters 1 to 4.
void bind_start(Statement& to, const JobNumber& job, const RecordKey& key) {
  to.bind(1, job.cluster).bind(2, job.job_id).bind(3, key.submit_s).bind(4, key.restart_count);
}

Maybe to_ns(const Maybe& time_s) { return time_s ? Maybe(*time_s * kSecond) : Maybe(); }

Status read_suspensions(Database& db, const JobNumber& job, const RecordKey& key,
                        Timeline& timeline) {
  auto row = db.prepare(
      "SELECT begin_time, end_time FROM suspension WHERE cluster = ? AND job_id = ? AND"
      " submit_time = ? AND restart_count = ? ORDER BY begin_time");
  if (!row) return Error{row.error()};
  bind_start(*row, job, key);
  while (row->step()) {
    timeline.suspensions.push_back({row->integer(0) * kSecond, to_ns(row->maybe_integer(1))});
  }
  return row->status();
}

Status read_waits(Database& db, const JobNumber& job, const RecordKey& key, Timeline& timeline) {
  auto row = db.prepare(
      "SELECT begin_time, end_time, reason FROM wait_reason WHERE cluster = ? AND job_id = ? AND"
      " submit_time = ? AND restart_count = ? ORDER BY begin_time");
  if (!row) return Error{row.error()};
  bind_start(*row, job, key);
  while (row->step()) {
    timeline.waits.push_back(
        {row->integer(0) * kSecond, to_ns(row->maybe_integer(1)), row->text(2)});
  }
  return row->status();
}

/// Helpers name the job's number alone, which may have been used before or since: those that were
/// submitted while this start ran. It has to run before it can be expanded.
Status read_helpers(Database& db, Timeline& timeline) {
  if (!timeline.job.start_s) return Done{};
  auto row = db.prepare(
      "SELECT DISTINCT job_id FROM job WHERE helper_of = ?2 AND cluster = ?1 AND submit_time >= ?3"
      " AND (?4 IS NULL OR submit_time <= ?4) ORDER BY job_id");
  if (!row) return Error{row.error()};
  row->bind(1, timeline.job.cluster).bind(2, timeline.job.job_id).bind(3, timeline.job.start_s);
  row->bind(4, timeline.job.end_s);
  while (row->step()) timeline.helpers.push_back(row->integer(0));
  return row->status();
}

Status read_allocations(Database& db, const JobNumber& job, const RecordKey& key,
                        Timeline& timeline) {
  auto row = db.prepare(
      "SELECT start_time, end_time, state, nodes, node_count, cpus, memory_bytes FROM allocation"
      " WHERE cluster = ? AND job_id = ? AND submit_time = ? AND restart_count = ?"
      " ORDER BY start_time");
  if (!row) return Error{row.error()};
  row->bind(1, job.cluster).bind(2, job.job_id).bind(3, key.submit_s).bind(4, key.restart_count);
  while (row->step()) {
    Allocation allocation;
    allocation.begin_ns = row->integer(0) * kSecond;
    if (const auto end = row->maybe_integer(1)) allocation.end_ns = *end * kSecond;
    allocation.state = row->maybe_text(2);
    allocation.expression = row->maybe_text(3);
    allocation.node_count = row->maybe_integer(4);
    allocation.cpus = row->maybe_integer(5);
    allocation.memory_bytes = row->maybe_integer(6);
    if (auto read = read_allocation_nodes(db, job, key, allocation); !read) return read;
    timeline.allocations.push_back(std::move(allocation));
  }
  return row->status();
}

/// Tasks of an array that wait are one record, under the array's own number.
Result<std::vector<JobNumber>> find_waiting_task(Database& db, const JobSelector& selector) {
  auto row = db.prepare(
      "SELECT cluster, job_id, array_tasks FROM job WHERE array_job_id = ? AND array_tasks IS NOT"
      " NULL");
  if (!row) return Error{row.error()};
  row->bind(1, selector.job_id);
  std::vector<JobNumber> jobs;
  while (row->step()) {
    JobNumber job{row->text(0), row->integer(1)};
    const bool meant = selector.cluster.empty() || selector.cluster == job.cluster;
    if (meant && array_holds(row->text(2), *selector.array_task)) jobs.push_back(job);
  }
  if (!row->status()) return Error{row->status().error()};
  return jobs;
}

}  // namespace

bool array_holds(std::string_view tasks, std::int64_t task) {
  tasks = tasks.substr(0, tasks.find('%'));
  while (!tasks.empty()) {
    const std::string_view part = tasks.substr(0, tasks.find(','));
    tasks.remove_prefix(std::min(tasks.size(), part.size() + 1));
    std::int64_t first = 0, step = 1;
    const char* const end = part.data() + part.size();
    auto [stop, failed] = std::from_chars(part.data(), end, first);
    if (failed != std::errc()) return false;
    std::int64_t last = first;
    if (stop != end && *stop == '-') stop = std::from_chars(stop + 1, end, last).ptr;
    if (stop != end && *stop == ':') std::from_chars(stop + 1, end, step);
    if (task >= first && task <= last && step > 0 && (task - first) % step == 0) return true;
  }
  return false;
}

Result<std::vector<JobNumber>> find_jobs(Database& db, const JobSelector& selector) {
  std::string which = "job_id = ?1 OR array_job_id = ?1 OR het_job_id = ?1";
  if (selector.exact) which = "job_id = ?1";
  if (selector.array_task) which = "array_job_id = ?1 AND array_task_id = ?2";
  if (selector.het_offset) which = "het_job_id = ?1 AND het_offset = ?2";
  std::string sql = "SELECT cluster, job_id FROM job WHERE " + which +
                    " UNION SELECT cluster, job_id FROM run WHERE " + which;
  // A notice knows the job's number only.
  if (!selector.array_task && !selector.het_offset) {
    sql += " UNION SELECT cluster, job_id FROM notice WHERE job_id = ?1";
  }
  auto row = db.prepare(sql);
  if (!row) return Error{row.error()};
  row->bind(1, selector.job_id);
  if (selector.array_task) row->bind(2, *selector.array_task);
  if (selector.het_offset) row->bind(2, *selector.het_offset);
  std::vector<JobNumber> jobs;
  while (row->step()) {
    JobNumber job{row->text(0), row->integer(1)};
    if (selector.cluster.empty() || selector.cluster == job.cluster) jobs.push_back(job);
  }
  if (!row->status()) return Error{row->status().error()};
  if (jobs.empty() && selector.array_task) return find_waiting_task(db, selector);
  return jobs;
}

Result<std::vector<RecordKey>> load_record_keys(Database& db, const JobNumber& job) {
  auto row = db.prepare(
      "SELECT submit_time, restart_count, start_time, end_time FROM job WHERE cluster = ? AND"
      " job_id = ? ORDER BY submit_time, restart_count");
  if (!row) return Error{row.error()};
  row->bind(1, job.cluster).bind(2, job.job_id);
  std::vector<RecordKey> keys;
  while (row->step()) {
    keys.push_back(
        {row->integer(0), row->integer(1), row->maybe_integer(2), row->maybe_integer(3)});
  }
  if (!row->status()) return Error{row->status().error()};
  return keys;
}

Result<std::vector<RunKey>> load_run_keys(Database& db, const JobNumber& job) {
  auto row = db.prepare(
      "SELECT run_id, restart_count, start_ns, step, node FROM run WHERE cluster = ? AND"
      " job_id = ?");
  if (!row) return Error{row.error()};
  row->bind(1, job.cluster).bind(2, job.job_id);
  std::vector<RunKey> keys;
  while (row->step()) {
    keys.push_back({row->integer(0), row->integer(1), row->integer(2), row->text(3), row->text(4)});
  }
  if (!row->status()) return Error{row->status().error()};
  return keys;
}

Status load_record(Database& db, const JobNumber& job, const RecordKey& key, Timeline& timeline) {
  auto row = db.prepare(
      "SELECT array_job_id, array_task_id, het_job_id, het_offset, uid, user, account, name,"
      " partition, qos, state, state_reason, exit_code, eligible_time, start_time, end_time,"
      " time_limit_s, suspended_s, requested_nodes, requested_cpus, requested_memory,"
      " admin_comment, source, seen_ns, requested_time_limit_s, array_tasks, helper_of FROM job"
      " WHERE cluster = ? AND job_id = ? AND submit_time = ? AND restart_count = ?");
  if (!row) return Error{row.error()};
  bind_start(*row, job, key);
  if (!row->step()) return row->status();
  JobFacts& facts = timeline.job;
  int at = 0;
  for (Maybe* number : {&facts.array_job_id, &facts.array_task_id, &facts.het_job_id,
                        &facts.het_offset, &facts.uid}) {
    *number = row->maybe_integer(at++);
  }
  for (MaybeText* text : {&facts.user, &facts.account, &facts.name, &facts.partition, &facts.qos,
                          &facts.state, &facts.state_reason}) {
    *text = row->maybe_text(at++);
  }
  for (Maybe* number :
       {&facts.exit_code, &facts.eligible_s, &facts.start_s, &facts.end_s, &facts.time_limit_s,
        &facts.suspended_s, &facts.requested_nodes, &facts.requested_cpus}) {
    *number = row->maybe_integer(at++);
  }
  facts.requested_memory = row->maybe_text(at++);
  facts.admin_comment = row->maybe_text(at++);
  facts.source = row->maybe_text(at++);
  facts.seen_ns = row->maybe_integer(at++);
  facts.requested_time_limit_s = row->maybe_integer(at++);
  facts.array_tasks = row->maybe_text(at++);
  facts.helper_of = row->maybe_integer(at++);
  facts.submit_s = key.submit_s;
  for (const auto read : {read_allocations, read_suspensions, read_waits}) {
    if (auto done = read(db, job, key, timeline); !done) return done;
  }
  return read_helpers(db, timeline);
}

Status load_facts_of_run(Database& db, std::int64_t run_id, JobFacts& facts) {
  auto row = db.prepare(
      "SELECT array_job_id, array_task_id, het_job_id, het_offset, uid, job_name, partition,"
      " account FROM run WHERE run_id = ?");
  if (!row) return Error{row.error()};
  row->bind(1, run_id);
  if (!row->step()) return row->status();
  int at = 0;
  for (Maybe* number : {&facts.array_job_id, &facts.array_task_id, &facts.het_job_id,
                        &facts.het_offset, &facts.uid}) {
    if (!*number) *number = row->maybe_integer(at);
    ++at;
  }
  for (MaybeText* text : {&facts.name, &facts.partition, &facts.account}) {
    if (!*text) *text = row->maybe_text(at);
    ++at;
  }
  return Done{};
}

/// What is taken off the times of a node.
std::int64_t shift_at(const Timeline& timeline, const std::string& node) {
  for (const auto& clock : timeline.clocks) {
    if (clock.node == node) return shift_of(clock);
  }
  return 0;
}

Status load_notices(Database& db, const JobNumber& job, const JobStart& start,
                    const std::vector<RunKey>& runs, Timeline& timeline) {
  auto row = db.prepare(
      "SELECT run_id, step, node, code, text, time_ns FROM notice WHERE cluster = ? AND job_id = ?"
      " AND restart_count = ? ORDER BY time_ns");
  if (!row) return Error{row.error()};
  row->bind(1, job.cluster).bind(2, job.job_id).bind(3, start.restart_count);
  std::set<std::int64_t> ours;
  for (const auto i : start.runs) ours.insert(runs[i].run_id);
  constexpr std::int64_t kAround = 120 * kSecond;
  while (row->step()) {
    const std::int64_t time_ns = row->integer(5) - shift_at(timeline, row->text(2));
    const Maybe run = row->maybe_integer(0);
    const bool in_time =
        (timeline.begin_ns == 0 || time_ns >= timeline.begin_ns - kAround) &&
        (timeline.running || timeline.end_ns == 0 || time_ns <= timeline.end_ns + kAround);
    if (run ? !ours.contains(*run) : !in_time) continue;
    timeline.notices.push_back({row->text(1), row->text(2), row->text(3), row->text(4), time_ns});
  }
  return row->status();
}

Result<std::vector<std::string>> load_source_problems(Database& db, const Timeline& timeline) {
  std::set<std::string> nodes;
  for (const auto& allocation : timeline.allocations) {
    for (const auto& node : allocation.nodes) nodes.insert(node.node);
  }
  for (const auto& run : timeline.runs) nodes.insert(run.node);
  auto row = db.prepare(
      "SELECT node, rows_deleted, damaged FROM source WHERE node IS NOT NULL UNION ALL"
      " SELECT node, rows_deleted, damaged FROM shipper");
  if (!row) return Error{row.error()};
  std::set<std::string> problems;  // one node may have been merged from several copies
  while (row->step()) {
    const std::string node = row->text(0);
    if (!nodes.contains(node)) continue;
    if (row->integer(1) > 0) {
      problems.insert(node + " gave up " + row->text(1) +
                      " old rows to stay within its size limit; some may be of this job");
    }
    if (const auto file = row->maybe_text(2)) {
      problems.insert(node + " set a damaged file aside, some rows may be in it: " + *file);
    }
  }
  if (!row->status()) return Error{row->status().error()};
  return std::vector<std::string>(problems.begin(), problems.end());
}

}  // namespace sphase
