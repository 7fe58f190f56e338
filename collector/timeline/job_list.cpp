#include "collector/timeline/job_list.h"

#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "collector/timeline/timeline_load.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Maybe uid_of(const std::string& user) {
  std::int64_t uid = 0;
  const char* end = user.data() + user.size();
  const auto [stop, failed] = std::from_chars(user.data(), end, uid);
  if (failed == std::errc() && stop == end) return uid;
  const passwd* entry = getpwnam(user.c_str());
  return entry != nullptr ? Maybe(entry->pw_uid) : std::nullopt;
}

bool belongs_to(const JobFacts& job, const std::string& user, const Maybe& uid) {
  if (user.empty() || job.user == user) return true;
  return uid && job.uid == uid;
}

Result<std::vector<JobNumber>> numbers(Database& db) {
  auto row = db.prepare(
      "SELECT cluster, job_id FROM job UNION SELECT cluster, job_id FROM run UNION"
      " SELECT cluster, job_id FROM notice");
  if (!row) return Error{row.error()};
  std::vector<JobNumber> jobs;
  while (row->step()) jobs.push_back({row->text(0), row->integer(1)});
  if (!row->status()) return Error{row->status().error()};
  return jobs;
}

struct RunFacts {
  std::int64_t end_ns, phases;
};

Result<RunFacts> run_facts(Database& db, std::int64_t run_id) {
  auto row = db.prepare(
      "SELECT coalesce(end_ns, last_ns, start_ns), (SELECT count(*) FROM phase_path AS p WHERE"
      " p.run_id = run.run_id) FROM run WHERE run_id = ?");
  if (!row) return Error{row.error()};
  row->bind(1, run_id);
  if (!row->step()) return Error{"run " + std::to_string(run_id) + " is gone"};
  return RunFacts{row->integer(0), row->integer(1)};
}

Result<JobLine> line_of(Database& db, const JobNumber& job, const JobStart& start,
                        const std::vector<RecordKey>& records, const std::vector<RunKey>& runs) {
  Timeline timeline;
  if (start.record) {
    auto loaded = load_record(db, job, records[*start.record], timeline);
    if (!loaded) return Error{loaded.error()};
  }
  JobLine line;
  line.job = timeline.job;
  line.job.cluster = job.cluster;
  line.job.job_id = job.job_id;
  line.job.restart_count = start.restart_count;
  std::set<std::string> steps, nodes;
  std::set<std::pair<std::string, std::int64_t>> seen;
  Maybe first, last;
  for (const auto i : start.runs) {
    auto facts = run_facts(db, runs[i].run_id);
    if (!facts) return Error{facts.error()};
    if (steps.insert(runs[i].step).second) line.phases += facts->phases;
    nodes.insert(runs[i].node);
    first = std::min(first.value_or(runs[i].begin_ns), runs[i].begin_ns);
    last = std::max(last.value_or(facts->end_ns), facts->end_ns);
  }
  if (!start.runs.empty()) {
    auto known = load_facts_of_run(db, runs[start.runs.front()].run_id, line.job);
    if (!known) return Error{known.error()};
  }
  line.begin_ns = line.job.start_s ? Maybe(*line.job.start_s * kSecond) : first;
  line.end_ns = line.job.end_s ? Maybe(*line.job.end_s * kSecond) : last;
  line.nodes = static_cast<std::int64_t>(nodes.size());
  line.steps = static_cast<std::int64_t>(steps.size());
  return line;
}

}  // namespace

Result<std::vector<JobLine>> list_jobs(Database& db, const std::string& user) {
  const Maybe uid = user.empty() ? std::nullopt : uid_of(user);
  auto jobs = numbers(db);
  if (!jobs) return Error{jobs.error()};
  std::vector<JobLine> lines;
  for (const auto& job : *jobs) {
    auto records = load_record_keys(db, job);
    if (!records) return Error{records.error()};
    auto runs = load_run_keys(db, job);
    if (!runs) return Error{runs.error()};
    auto starts = match_runs(*records, *runs);
    if (starts.empty()) starts.push_back({});
    for (const auto& start : starts) {
      auto line = line_of(db, job, start, *records, *runs);
      if (!line) return Error{line.error()};
      if (belongs_to(line->job, user, uid)) lines.push_back(std::move(*line));
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const JobLine& a, const JobLine& b) {
    constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
    return a.begin_ns.value_or(kNever) < b.begin_ns.value_or(kNever);
  });
  return lines;
}

}  // namespace sphase
