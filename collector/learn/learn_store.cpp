#include "collector/learn/learn_store.h"

#include <algorithm>
#include <charconv>

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSilenceNs = 300 * kSecond;  // as a run is taken for lost: run_load.cpp

Result<std::vector<std::string>> texts_of(Database& db, const char* sql) {
  auto row = db.prepare(sql);
  if (!row) return Error{row.error()};
  std::vector<std::string> texts;
  while (row->step()) texts.push_back(row->text(0));
  if (!row->status()) return Error{row->status().error()};
  return texts;
}

Status touch(Database& db, const std::string& profile) {
  auto write = db.prepare("INSERT OR IGNORE INTO profile_touched VALUES(?)");
  if (!write) return Error{write.error()};
  return write->bind(1, profile).run();
}

void bind_start(Statement& to, const ObservedJob& job) {
  to.bind(1, job.cluster).bind(2, job.job_id).bind(3, job.submit_s).bind(4, job.restart_count);
  to.bind(5, job.start_s);
}

Status remove_start(Database& db, const ObservedJob& job) {
  auto remove = db.prepare(
      "DELETE FROM observed_job WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ? AND start_time = ?");
  if (!remove) return Error{remove.error()};
  bind_start(*remove, job);
  return remove->run();
}

Status insert_start(Database& db, const ObservedJob& job, std::int64_t now_ns) {
  auto insert = db.prepare(
      "INSERT INTO observed_job(cluster, job_id, submit_time, restart_count, start_time, end_time,"
      " profile, name, partition, nodes_asked, learned_ns) VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  bind_start(*insert, job);
  insert->bind(6, job.end_s).bind(7, job.profile).bind(8, job.name).bind(9, job.partition);
  return insert->bind(10, job.nodes_asked).bind(11, now_ns).run();
}

Status insert_phases(Database& db, std::int64_t observed_id,
                     const std::vector<Observation>& phases) {
  auto insert = db.prepare(
      "INSERT INTO observation(observed_id, position, path, nodes, nodes_used, tasks, duration_s,"
      " cpu_time_s, cpus_busy, memory_peak_bytes, memory_limit_bytes, flags)"
      " VALUES(?,?,?,?,?,?,?,?,?,?,?,?)");
  if (!insert) return Error{insert.error()};
  std::int64_t position = 0;
  for (const auto& phase : phases) {
    insert->bind(1, observed_id).bind(2, position++).bind(3, phase.path).bind(4, phase.nodes);
    insert->bind(5, phase.nodes_used).bind(6, phase.tasks).bind(7, phase.duration_s);
    insert->bind(8, phase.cpu_time_s).bind(9, phase.cpus_busy).bind(10, phase.memory_peak_bytes);
    insert->bind(11, phase.memory_limit_bytes).bind(12, phase.flags);
    if (auto done = insert->run(); !done) return done;
  }
  return Done{};
}

Status load_phases(Statement& row, std::int64_t observed_id, std::vector<Observation>& phases) {
  row.bind(1, observed_id);
  while (row.step()) {
    Observation phase;
    phase.path = row.text(0);
    phase.nodes = row.integer(1);
    phase.nodes_used = row.integer(2);
    phase.tasks = row.maybe_integer(3);
    phase.duration_s = row.real(4);
    phase.cpu_time_s = row.maybe_real(5);
    phase.cpus_busy = row.maybe_real(6);
    phase.memory_peak_bytes = row.maybe_integer(7);
    phase.memory_limit_bytes = row.maybe_integer(8);
    phase.flags = static_cast<std::uint32_t>(row.integer(9));
    phases.push_back(std::move(phase));
  }
  return row.status();
}

/// The smaller limit; 0 is none.
std::int64_t tighter(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

Maybe uid_of(const std::string& profile) {
  std::int64_t uid = 0;
  const char* const end = profile.data() + profile.size();
  const auto [stop, failed] = std::from_chars(profile.data(), end, uid);
  return failed == std::errc() && stop != end && *stop == '/' ? Maybe(uid) : std::nullopt;
}

}  // namespace

Status save_observed(Database& db, const ObservedJob& job, std::int64_t now_ns) {
  if (auto removed = remove_start(db, job); !removed) return removed;
  if (auto inserted = insert_start(db, job, now_ns); !inserted) return inserted;
  if (auto inserted = insert_phases(db, db.last_rowid(), job.phases); !inserted) return inserted;
  return touch(db, job.profile);
}

Status clear_observed(Database& db, const JobNumber& job) {
  auto touched = db.prepare(
      "INSERT OR IGNORE INTO profile_touched SELECT profile FROM observed_job WHERE cluster = ? AND"
      " job_id = ?");
  auto remove = db.prepare("DELETE FROM observed_job WHERE cluster = ? AND job_id = ?");
  for (auto* statement : {&touched, &remove}) {
    if (!*statement) return Error{statement->error()};
    auto done = (*statement)->bind(1, job.cluster).bind(2, job.job_id).run();
    if (!done) return done;
  }
  return Done{};
}

Result<std::vector<ObservedJob>> load_observed(Database& db, const std::string& profile,
                                               std::int64_t most) {
  auto row = db.prepare(
      "SELECT observed_id, cluster, job_id, restart_count, submit_time, start_time, end_time, name,"
      " partition, nodes_asked FROM observed_job WHERE profile = ?1 AND end_time * 1000000000 >="
      " coalesce((SELECT before_ns FROM profile_forgotten WHERE profile = ?1), 0)"
      " ORDER BY end_time DESC, observed_id DESC LIMIT ?2");
  auto phases = db.prepare(
      "SELECT path, nodes, nodes_used, tasks, duration_s, cpu_time_s, cpus_busy,"
      " memory_peak_bytes, memory_limit_bytes, flags FROM observation WHERE observed_id = ?"
      " ORDER BY position");
  for (const auto* statement : {&row, &phases}) {
    if (!*statement) return Error{statement->error()};
  }
  row->bind(1, profile).bind(2, most);
  std::vector<ObservedJob> jobs;
  while (row->step()) {
    ObservedJob job;
    job.profile = profile;
    job.cluster = row->text(1);
    job.job_id = row->integer(2);
    job.restart_count = row->integer(3);
    job.submit_s = row->integer(4);
    job.start_s = row->integer(5);
    job.end_s = row->integer(6);
    job.name = row->text(7);
    job.partition = row->text(8);
    job.nodes_asked = row->maybe_integer(9);
    if (auto loaded = load_phases(*phases, row->integer(0), job.phases); !loaded) {
      return Error{loaded.error()};
    }
    jobs.push_back(std::move(job));
  }
  if (!row->status()) return Error{row->status().error()};
  std::reverse(jobs.begin(), jobs.end());
  return jobs;
}

Result<std::vector<ProfileLine>> list_profiles(Database& db) {
  // SQLite takes the bare columns from the row that has the maximum (sqlite.org/lang_select.html).
  auto row = db.prepare(
      "SELECT profile, name, partition, count(*), max(end_time) AS last FROM observed_job LEFT JOIN"
      " profile_forgotten USING (profile) WHERE end_time * 1000000000 >= coalesce(before_ns, 0)"
      " GROUP BY profile ORDER BY last DESC, profile");
  if (!row) return Error{row.error()};
  std::vector<ProfileLine> lines;
  while (row->step()) {
    ProfileLine line;
    line.profile = row->text(0);
    line.uid = uid_of(line.profile);
    line.name = row->text(1);
    line.partition = row->text(2);
    line.runs = row->integer(3);
    line.last_end_s = row->integer(4);
    lines.push_back(std::move(line));
  }
  if (!row->status()) return Error{row->status().error()};
  return lines;
}

Status forget_profile(Database& db, const std::string& profile, std::int64_t now_ns) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto write = db.prepare("INSERT OR REPLACE INTO profile_forgotten VALUES(?,?)");
  if (!write) return Error{write.error()};
  if (auto done = write->bind(1, profile).bind(2, now_ns).run(); !done) return done;
  if (auto done = touch(db, profile); !done) return done;
  return transaction->commit();
}

Result<PartitionLimits> load_partition_limits(Database& db, const std::string& cluster,
                                              const std::string& partition) {
  auto row = db.prepare(
      "SELECT nodes_least, nodes_most, time_most_s, memory_most_bytes FROM partition_limits WHERE"
      " cluster = ? AND partition = ?");
  if (!row) return Error{row.error()};
  PartitionLimits limits;
  for (std::size_t from = 0; from <= partition.size();) {
    const std::size_t comma = std::min(partition.find(',', from), partition.size());
    row->bind(1, cluster).bind(2, partition.substr(from, comma - from));
    from = comma + 1;
    while (row->step()) {
      limits.nodes_least = std::max(limits.nodes_least, row->integer(0));
      limits.nodes_most = tighter(limits.nodes_most, row->integer(1));
      limits.time_most_s = tighter(limits.time_most_s, row->integer(2));
      limits.memory_most_bytes = tighter(limits.memory_most_bytes, row->integer(3));
    }
    if (!row->status()) return Error{row->status().error()};
  }
  return limits;
}

Result<std::vector<JobNumber>> jobs_to_learn(Database& db, std::int64_t now_ns, std::int64_t most) {
  auto row = db.prepare(
      "SELECT cluster, job_id FROM learn_queue AS q WHERE CASE"
      " WHEN EXISTS (SELECT 1 FROM job AS j WHERE j.cluster = q.cluster AND j.job_id = q.job_id)"
      " THEN (SELECT end_time FROM job AS j WHERE j.cluster = q.cluster AND j.job_id = q.job_id"
      "  ORDER BY submit_time DESC, restart_count DESC LIMIT 1) IS NOT NULL"
      " ELSE NOT EXISTS (SELECT 1 FROM run AS r WHERE r.cluster = q.cluster AND"
      "  r.job_id = q.job_id AND r.end_ns IS NULL AND coalesce(r.last_ns, r.start_ns) > ?1) END"
      " LIMIT ?2");
  if (!row) return Error{row.error()};
  row->bind(1, now_ns - kSilenceNs).bind(2, most);
  std::vector<JobNumber> jobs;
  while (row->step()) jobs.push_back({row->text(0), row->integer(1)});
  if (!row->status()) return Error{row->status().error()};
  return jobs;
}

Status forget_news(Database& db, const JobNumber& job) {
  auto remove = db.prepare("DELETE FROM learn_queue WHERE cluster = ? AND job_id = ?");
  if (!remove) return Error{remove.error()};
  return remove->bind(1, job.cluster).bind(2, job.job_id).run();
}

Result<std::vector<std::string>> touched_profiles(Database& db) {
  return texts_of(db, "SELECT profile FROM profile_touched ORDER BY profile");
}

Result<std::vector<std::string>> all_profiles(Database& db) {
  return texts_of(db, "SELECT DISTINCT profile FROM observed_job ORDER BY profile");
}

Status clear_touched(Database& db, const std::vector<std::string>& profiles) {
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto remove = db.prepare("DELETE FROM profile_touched WHERE profile = ?");
  if (!remove) return Error{remove.error()};
  for (const auto& profile : profiles) {
    if (auto done = remove->bind(1, profile).run(); !done) return done;
  }
  return transaction->commit();
}

}  // namespace sphase
