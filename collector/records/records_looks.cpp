// What successive looks at slurmctld show: suspensions, reasons for waiting.
#include <algorithm>
#include <optional>

#include "collector/records/record_tables.h"
#include "collector/records/records_words.h"

namespace sphase {
namespace {

struct Known {
  std::int64_t closed_s = 0;  // sum of the intervals that have an end
  Maybe open_s;               // begin of the one that has none
  std::int64_t last_end_s = 0;
};

Result<Known> known_suspensions(Database& db, const JobFacts& job) {
  auto row = db.prepare(
      "SELECT begin_time, end_time FROM suspension WHERE cluster = ? AND job_id = ? AND"
      " submit_time = ? AND restart_count = ? ORDER BY begin_time");
  if (!row) return Error{row.error()};
  bind_start(*row, job);
  Known known;
  while (row->step()) {
    const Maybe end_s = row->maybe_integer(1);
    if (!end_s) known.open_s = row->integer(0);
    if (end_s) known.closed_s += *end_s - row->integer(0);
    known.last_end_s = end_s.value_or(known.last_end_s);
  }
  if (!row->status()) return Error{row->status().error()};
  return known;
}

Status write_suspension(Database& db, const JobFacts& job, std::int64_t begin_s, Maybe end_s) {
  auto write = db.prepare("INSERT OR REPLACE INTO suspension VALUES(?,?,?,?,?,?)");
  if (!write) return Error{write.error()};
  bind_start(*write, job);
  return write->bind(5, begin_s).bind(6, end_s).run();
}

/// One that turned out to have no length: the job was cancelled while it was suspended.
Status forget_suspension(Database& db, const JobFacts& job, std::int64_t begin_s) {
  auto forget = db.prepare(
      "DELETE FROM suspension WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ? AND begin_time = ?");
  if (!forget) return Error{forget.error()};
  bind_start(*forget, job);
  return forget->bind(5, begin_s).run();
}

/// The open interval ends, at the latest at `latest_s`; with it the closed ones are `sum_s`.
Status close_open(Database& db, const JobFacts& job, const Known& known, std::int64_t sum_s,
                  std::int64_t latest_s) {
  const std::int64_t left_s = std::max<std::int64_t>(0, sum_s - known.closed_s);
  const std::int64_t end_s = std::min(*known.open_s + left_s, latest_s);
  if (end_s <= *known.open_s) return forget_suspension(db, job, *known.open_s);
  return write_suspension(db, job, *known.open_s, end_s);
}

/// slurmctld's word: suspended since `since_s`, or gone on then.
Status note_live(Database& db, const JobFacts& job, const Known& known, std::int64_t since_s,
                 std::int64_t ran_s) {
  // Time of the suspensions that are over: all that was not run up to then.
  const std::int64_t sum_s = std::max<std::int64_t>(0, since_s - *job.start_s - ran_s);
  if (job.state == "SUSPENDED") {
    if (known.open_s == since_s) return Done{};
    if (known.open_s) {
      if (auto done = close_open(db, job, known, sum_s, since_s); !done) return done;
    }
    return write_suspension(db, job, since_s, {});
  }
  if (known.open_s) return close_open(db, job, known, sum_s, since_s);
  // It was suspended and went on between two looks.
  const std::int64_t missed_s = sum_s - known.closed_s;
  const std::int64_t begin_s = std::max({since_s - missed_s, known.last_end_s, *job.start_s});
  if (missed_s <= 0 || begin_s >= since_s) return Done{};
  return write_suspension(db, job, begin_s, since_s);
}

Status close_waits(Database& db, const JobFacts& job, std::int64_t at_s) {
  auto close = db.prepare(
      "UPDATE wait_reason SET end_time = max(begin_time, ?5) WHERE cluster = ?1 AND job_id = ?2"
      " AND submit_time = ?3 AND restart_count = ?4 AND end_time IS NULL");
  if (!close) return Error{close.error()};
  bind_start(*close, job);
  return close->bind(5, at_s).run();
}

}  // namespace

Status note_suspension(Database& db, const JobRecord& record, const JobFacts& job) {
  if (!job.start_s) return Done{};
  auto known = known_suspensions(db, job);
  if (!known) return Error{known.error()};
  if (record.suspend_s) {
    return note_live(db, job, *known, *record.suspend_s, record.ran_s.value_or(0));
  }
  // slurmctld has forgotten the job: slurmdbd says how long it was.
  if (!known->open_s || !job.end_s) return Done{};
  return close_open(db, job, *known, job.suspended_s.value_or(*job.end_s - *known->open_s),
                    *job.end_s);
}

Status note_wait(Database& db, const JobFacts& job, std::int64_t now_s) {
  // A word of slurmdbd's alone may be older than what was seen.
  if (is_over(job.state) || job.start_s) {
    return close_waits(db, job, job.start_s.value_or(job.end_s.value_or(now_s)));
  }
  if (job.source == "slurmdbd" || !job.state_reason || *job.state_reason == "None") return Done{};
  auto same = db.prepare(
      "SELECT reason FROM wait_reason WHERE cluster = ? AND job_id = ? AND submit_time = ? AND"
      " restart_count = ? AND end_time IS NULL");
  if (!same) return Error{same.error()};
  bind_start(*same, job);
  if (same->step() && same->text(0) == *job.state_reason) return Done{};
  if (!same->status()) return same->status();
  const std::int64_t at_s = std::max(now_s, job.submit_s.value_or(0));
  if (auto closed = close_waits(db, job, at_s); !closed) return closed;
  // Two reasons in one second: the later one.
  auto write = db.prepare("INSERT OR REPLACE INTO wait_reason VALUES(?,?,?,?,?,NULL,?)");
  if (!write) return Error{write.error()};
  bind_start(*write, job);
  return write->bind(5, at_s).bind(6, job.state_reason).run();
}

}  // namespace sphase
