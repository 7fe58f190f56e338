#include "collector/http/job_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collector/report/format.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostWords = 8, kMostTextBytes = 200;

/// Jobs as the scheduler knows them, and after them those of which only runs tell.
const std::string kKnown =
    "WITH loose AS (SELECT * FROM (SELECT cluster, job_id FROM run GROUP BY cluster, job_id) AS r"
    " WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.cluster = r.cluster AND job.job_id = r.job_id)"
    "), known AS (SELECT cluster, job_id, restart_count, array_job_id, array_task_id,"
    " het_job_id, het_offset, coalesce(uid, (SELECT uid FROM run WHERE run.cluster = job.cluster"
    " AND run.job_id = job.job_id LIMIT 1)) AS uid, user, name, partition, state, start_time,"
    " end_time, coalesce(start_time, submit_time) AS at FROM job"
    " UNION ALL SELECT cluster, job_id, restart_count, max(array_job_id), max(array_task_id),"
    " max(het_job_id), max(het_offset), uid, NULL, max(job_name), max(partition), NULL,"
    " min(start_ns) / 1000000000, CASE WHEN count(end_ns) = count(*) THEN"
    " max(end_ns) / 1000000000 END, min(start_ns) / 1000000000"
    " FROM loose JOIN run USING (cluster, job_id) GROUP BY cluster, job_id, restart_count, uid)"
    " SELECT * FROM known WHERE (?1 OR uid = ?2)";

/// The n-th parameter as a word to be found.
std::string condition(std::size_t n) {
  const std::string word = '?' + std::to_string(n);
  return " AND (CAST(job_id AS TEXT) = " + word + " OR CAST(array_job_id AS TEXT) = " + word +
         " OR array_job_id || '_' || array_task_id = " + word +
         " OR het_job_id || '+' || het_offset = " + word + " OR CAST(uid AS TEXT) = " + word +
         " OR instr(lower(name), " + word + ") OR instr(lower(user), " + word +
         ") OR instr(lower(state), " + word + "))";
}

FoundJob job_of(const Statement& row) {
  FoundJob found;
  JobFacts& job = found.job;
  job.cluster = row.text(0);
  job.job_id = row.integer(1);
  job.restart_count = row.integer(2);
  int at = 3;
  for (Maybe* number :
       {&job.array_job_id, &job.array_task_id, &job.het_job_id, &job.het_offset, &job.uid}) {
    *number = row.maybe_integer(at++);
  }
  for (MaybeText* text : {&job.user, &job.name, &job.partition, &job.state}) {
    *text = row.maybe_text(at++);
  }
  for (Maybe* time : {&job.start_s, &job.end_s}) *time = row.maybe_integer(at++);
  return found;
}

/// As parse_job_selector takes it.
std::string selector_of(const JobFacts& job) {
  if (job.array_job_id && job.array_task_id) {
    return std::to_string(*job.array_job_id) + '_' + std::to_string(*job.array_task_id);
  }
  if (job.het_job_id && job.het_offset) {
    return std::to_string(*job.het_job_id) + '+' + std::to_string(*job.het_offset);
  }
  return std::to_string(job.job_id);
}

Json number(const Maybe& value) { return value ? Json(*value) : Json(nullptr); }

Json text(const MaybeText& value) {
  return value ? Json(clean(std::string_view(*value).substr(0, kMostTextBytes))) : Json(nullptr);
}

}  // namespace

std::vector<std::string> search_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty() && words.size() < kMostWords) words.push_back(word);
    word.clear();
  };
  for (const char c : text.substr(0, kMostTextBytes)) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      finish();
    } else {
      word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
  }
  finish();
  return words;
}

Result<std::vector<FoundJob>> search_jobs(Database& db, const Viewer& viewer, std::string_view text,
                                          std::size_t most) {
  constexpr std::size_t kFirstWord = 4;
  const auto words = search_words(text);
  std::string sql = kKnown;
  for (std::size_t i = 0; i < words.size(); ++i) sql += condition(kFirstWord + i);
  auto row = db.prepare(sql + " ORDER BY at DESC, job_id DESC, restart_count DESC LIMIT ?3");
  if (!row) return Error{row.error()};
  row->bind(1, viewer.is_operator ? 1 : 0).bind(2, viewer.uid);
  row->bind(3, static_cast<std::int64_t>(std::min(most, kMostJobs)));
  for (std::size_t i = 0; i < words.size(); ++i) {
    row->bind(static_cast<int>(kFirstWord + i), words[i]);
  }
  std::vector<FoundJob> jobs;
  while (row->step()) jobs.push_back(job_of(*row));
  if (!row->status()) return Error{row->status().error()};
  return jobs;
}

std::string jobs_json(const std::vector<FoundJob>& jobs, const Viewer& viewer) {
  Json list = Json::array();
  for (const auto& [job] : jobs) {
    list.push_back({{"id", selector_of(job)},
                    {"cluster", text(job.cluster)},
                    {"job_id", job.job_id},
                    {"restart_count", job.restart_count},
                    {"name", text(job.name)},
                    {"user", text(job.user)},
                    {"uid", number(job.uid)},
                    {"partition", text(job.partition)},
                    {"state", text(job.state)},
                    {"begin_s", number(job.start_s)},
                    {"end_s", number(job.end_s)}});
  }
  const Json all{{"jobs", list}, {"uid", viewer.uid}, {"all_users", viewer.is_operator}};
  return all.dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace sphase
