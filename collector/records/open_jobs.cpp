#include "collector/records/open_jobs.h"

#include <algorithm>
#include <map>

namespace sphase {
namespace {

/// Messages of slurmctld's to slurmdbd are this late at most, if slurmdbd is there.
constexpr std::int64_t kLastWordS = 600, kNoWordS = 86400;
constexpr std::int64_t kMissWaitS = 60, kMostWaitS = 86400, kMostMisses = 20;
constexpr std::int64_t kSlackS = 2;

/// The first number: all of them are asked for where there is no time.
constexpr const char* kDue = " (?1 IS NULL OR ask_time <= ?1)";

Status read_jobs(Database& db, const Maybe& now_s, OpenJobs& open) {
  auto row =
      db.prepare("SELECT cluster, job_id, since_time FROM open_job WHERE" + std::string(kDue));
  if (!row) return Error{row.error()};
  row->bind(1, now_s);
  std::set<std::string> clusters;
  std::set<std::int64_t> ids;
  while (row->step()) {
    clusters.insert(row->text(0));
    ids.insert(row->integer(1));
    open.jobs.emplace(row->text(0), row->integer(1));
    const std::int64_t since_s = row->integer(2) - kBeforeS;
    const bool first = open.jobs.size() == 1;
    open.query.since_s = first ? since_s : std::min(open.query.since_s, since_s);
  }
  open.query.clusters.assign(clusters.begin(), clusters.end());
  open.query.job_ids.assign(ids.begin(), ids.end());
  return row->status();
}

Status read_witnesses(Database& db, const Maybe& now_s, OpenJobs& open) {
  // CROSS JOIN keeps SQLite at the order that is cheap: open_job is short, the index run_job does
  // the rest (sqlite.org/optoverview.html, "Manual Control Of Query Plans Using CROSS JOIN").
  auto row = db.prepare(
      "SELECT run.cluster, run.job_id, restart_count, start_ns / 1000000000 FROM open_job CROSS "
      "JOIN"
      " run ON run.job_id = open_job.job_id AND run.cluster = open_job.cluster WHERE" +
      std::string(kDue) +
      " UNION"
      " SELECT notice.cluster, notice.job_id, restart_count, time_ns / 1000000000 FROM open_job"
      " CROSS JOIN notice ON notice.job_id = open_job.job_id AND notice.cluster = open_job.cluster"
      " WHERE" +
      kDue);
  if (!row) return Error{row.error()};
  row->bind(1, now_s);
  while (row->step()) {
    open.witnesses.push_back({row->text(0), row->integer(1), row->integer(2), row->integer(3)});
  }
  return row->status();
}

struct Kept {
  bool known = false, ended = false;
  bool by_slurmdbd = false;
  std::int64_t ended_s = 0;  // last of its starts
};

/// What the store has of each open job, in one pass.
Result<std::map<JobKey, Kept>> kept_of_open(Database& db) {
  auto row = db.prepare(
      "SELECT o.cluster, o.job_id, count(j.job_id), coalesce(sum(j.end_time IS NULL), 0),"
      " coalesce(max(j.end_time), 0), coalesce(min(j.source <> 'slurmctld'), 0) FROM open_job AS o"
      " CROSS JOIN job AS j ON j.cluster = o.cluster AND j.job_id = o.job_id GROUP BY 1, 2");
  if (!row) return Error{row.error()};
  std::map<JobKey, Kept> kept;
  while (row->step()) {
    kept[{row->text(0), row->integer(1)}] = {row->integer(2) > 0, row->integer(3) == 0,
                                             row->integer(5) == 1, row->integer(4)};
  }
  if (!row->status()) return Error{row->status().error()};
  return kept;
}

Status close(Database& db, const JobKey& job) {
  auto remove = db.prepare("DELETE FROM open_job WHERE cluster = ? AND job_id = ?");
  if (!remove) return Error{remove.error()};
  return remove->bind(1, job.first).bind(2, job.second).run();
}

Status miss(Database& db, const JobKey& job, std::int64_t now_s) {
  auto later = db.prepare(
      "UPDATE open_job SET misses = misses + 1, ask_time = ?3 + min(?5, ?4 << min(misses, 20))"
      " WHERE cluster = ?1 AND job_id = ?2");
  auto give_up =
      db.prepare("DELETE FROM open_job WHERE cluster = ?1 AND job_id = ?2 AND misses >= ?3");
  for (const auto* statement : {&later, &give_up}) {
    if (!*statement) return Error{statement->error()};
  }
  later->bind(1, job.first).bind(2, job.second).bind(3, now_s).bind(4, kMissWaitS);
  if (auto done = later->bind(5, kMostWaitS).run(); !done) return done;
  return give_up->bind(1, job.first).bind(2, job.second).bind(3, kMostMisses).run();
}

/// Mentioned after the end of all that is known: the number was used again.
bool used_again(const std::map<JobKey, std::int64_t>& mentioned, const JobKey& job,
                std::int64_t ended_s) {
  const auto last = mentioned.find(job);
  return last != mentioned.end() && last->second > ended_s + kSlackS;
}

}  // namespace

Result<OpenJobs> open_jobs(Database& db, Maybe now_s) {
  OpenJobs open;
  if (auto read = read_jobs(db, now_s, open); !read) return Error{read.error()};
  if (open.jobs.empty()) return open;
  if (auto read = read_witnesses(db, now_s, open); !read) return Error{read.error()};
  return open;
}

Status settle_jobs(Database& db, const OpenJobs& asked, const Answers& answers,
                   std::int64_t now_s) {
  if (!answers.slurmdbd) return Done{};
  std::map<JobKey, std::int64_t> mentioned;
  for (const auto& witness : asked.witnesses) {
    auto& last = mentioned[{witness.cluster, witness.job_id}];
    last = std::max(last, witness.begin_s);
  }
  auto transaction = Transaction::begin(db);
  if (!transaction) return Error{transaction.error()};
  auto kept = kept_of_open(db);
  if (!kept) return Error{kept.error()};
  for (const auto& job : asked.jobs) {
    const Kept its = (*kept)[job];
    const bool news_due = !its.known || (its.ended && used_again(mentioned, job, its.ended_s));
    const std::int64_t word_s = its.by_slurmdbd ? kLastWordS : kNoWordS;
    Status done = Done{};
    if (news_due) {
      if (answers.slurmctld) done = miss(db, job, now_s);
    } else if (its.ended && now_s - its.ended_s > word_s && !answers.unfinished.contains(job)) {
      done = close(db, job);
    }
    if (!done) return done;
  }
  return transaction->commit();
}

Result<bool> is_settled(Database& db, const JobFacts& job) {
  auto row = db.prepare(
      "SELECT 1 FROM job WHERE cluster = ?1 AND job_id = ?2 AND end_time = ?3 AND NOT EXISTS ("
      " SELECT 1 FROM open_job WHERE cluster = ?1 AND job_id = ?2)");
  if (!row) return Error{row.error()};
  const bool settled = row->bind(1, job.cluster).bind(2, job.job_id).bind(3, job.end_s).step();
  if (!settled && !row->status()) return Error{row->status().error()};
  return settled;
}

}  // namespace sphase
