#include "collector/answer/answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "collector/page/page.h"
#include "collector/report/export_rows.h"
#include "collector/report/jobs_print.h"
#include "collector/report/report_print.h"
#include "collector/timeline/job_list.h"
#include "collector/timeline/timeline_load.h"

namespace sphase {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostJobs = 1000;

Reply wrong(const std::string& why) { return {2, why}; }
Reply failed(const std::string& why) { return {1, why}; }

Reply report(Database& db, const Viewer& viewer, const Question& question) {
  if (question.jobs.size() != 1) return wrong("report takes one job");
  auto selector = parse_job_selector(question.jobs.front());
  if (!selector) return wrong(selector.error());
  selector->cluster = question.cluster;
  selector->every = question.all;
  std::vector<Timeline> starts;
  if (viewer.is_operator) {
    auto loaded = load_timelines(db, *selector);
    if (!loaded) return failed(loaded.error());
    starts = std::move(*loaded);
  } else {
    auto seen = seen_by(viewer, db, *selector);
    if (!seen) return failed(seen.error());
    if (!*seen) return failed("there is no job " + question.jobs.front() + " of yours");
    if (!(*seen)->problem.empty()) return failed((*seen)->problem);
    starts = std::move((*seen)->starts);
  }
  const ReportOptions options{question.instances, question.nodes};
  if (question.format == "json") return {0, report_json(starts, options)};
  if (question.format == "csv") return {0, report_csv(starts, options)};
  if (question.format == "html") return {0, page_html(page_data(starts))};
  return {0, report_text(starts, options)};
}

Reply jobs(Database& db, const Viewer& viewer, const Question& question) {
  auto lines = list_jobs(db, question.user);
  if (!lines) return failed(lines.error());
  std::erase_if(*lines, [&](const JobLine& line) { return !may_see(viewer, line.job); });
  return {0, question.format == "json" ? jobs_json(*lines) : jobs_text(*lines)};
}

Result<std::vector<std::int64_t>> run_ids(Database& db, const Viewer& viewer, const JobNumber* job,
                                          const std::string& step) {
  std::string sql = "SELECT run_id FROM run WHERE (?1 < 0 OR uid = ?1)";
  if (job != nullptr) sql += " AND cluster = ?2 AND job_id = ?3";
  if (!step.empty()) sql += " AND step = ?4";
  auto row = db.prepare(sql + " ORDER BY start_ns");
  if (!row) return Error{row.error()};
  row->bind(1, viewer.is_operator ? std::int64_t{-1} : std::int64_t{viewer.uid});
  if (job != nullptr) row->bind(2, job->cluster).bind(3, job->job_id);
  if (!step.empty()) row->bind(4, step);
  std::vector<std::int64_t> ids;
  while (row->step()) ids.push_back(row->integer(0));
  if (auto read = row->status(); !read) return Error{read.error()};
  return ids;
}

/// Runs of one job that was named, as far as they are the viewer's.
Result<std::vector<std::int64_t>> runs_of(Database& db, const Viewer& viewer,
                                          const JobSelector& selector) {
  auto numbers = find_jobs(db, selector);
  if (!numbers) return Error{numbers.error()};
  std::vector<std::int64_t> ids;
  for (const auto& number : *numbers) {
    auto some = run_ids(db, viewer, &number, selector.step);
    if (!some) return some;
    ids.insert(ids.end(), some->begin(), some->end());
  }
  return ids;
}

Reply export_of(Database& db, const Viewer& viewer, const Question& question, const Write& write) {
  ExportOptions options{question.table, {}, question.format == "csv"};
  const auto& tables = exported_tables();
  if (std::find(tables.begin(), tables.end(), options.table) == tables.end()) {
    return wrong("there is no table " + options.table + " to export");
  }
  for (const auto& name : question.jobs) {
    auto selector = parse_job_selector(name);
    if (!selector) return wrong(selector.error());
    selector->cluster = question.cluster;
    auto ids = runs_of(db, viewer, *selector);
    if (!ids) return failed(ids.error());
    if (ids->empty()) return failed("nothing was recorded of job " + name);
    options.run_ids.insert(options.run_ids.end(), ids->begin(), ids->end());
  }
  if (question.jobs.empty()) {
    auto ids = run_ids(db, viewer, nullptr, "");
    if (!ids) return failed(ids.error());
    options.run_ids = std::move(*ids);
  }
  const auto done = export_rows(db, options, write);
  return done ? Reply() : failed(done.error());
}

}  // namespace

std::string text_of(const Question& question) {
  return Json{
      {"command", question.command},     {"jobs", question.jobs},   {"cluster", question.cluster},
      {"user", question.user},           {"table", question.table}, {"format", question.format},
      {"instances", question.instances}, {"nodes", question.nodes}, {"all", question.all}}
      .dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<Question> parse_question(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Question question;
  const auto take = [&](const char* name, auto& out) {
    const auto found = json.find(name);
    if (found == json.end()) return true;
    using Value = std::decay_t<decltype(out)>;
    if constexpr (std::is_same_v<Value, bool>) {
      if (!found->is_boolean()) return false;
    } else {
      if (!found->is_string()) return false;
    }
    out = found->template get<Value>();
    return true;
  };
  const bool good = take("command", question.command) && take("cluster", question.cluster) &&
                    take("user", question.user) && take("table", question.table) &&
                    take("format", question.format) && take("instances", question.instances) &&
                    take("nodes", question.nodes) && take("all", question.all);
  const auto jobs = json.find("jobs");
  if (!good || (jobs != json.end() && !jobs->is_array())) return std::nullopt;
  if (jobs == json.end()) return question;
  if (jobs->size() > kMostJobs) return std::nullopt;
  for (const auto& job : *jobs) {
    if (!job.is_string()) return std::nullopt;
    question.jobs.push_back(job.get<std::string>());
  }
  return question;
}

Reply answer(Database& db, const Viewer& viewer, const Question& question, const Write& write) {
  if (question.command == "export") return export_of(db, viewer, question, write);
  Reply reply = wrong("there is no question \"" + question.command + "\"");
  if (question.command == "report") reply = report(db, viewer, question);
  if (question.command == "jobs") reply = jobs(db, viewer, question);
  if (reply.code == 0) write(std::exchange(reply.text, {}));
  return reply;
}

Reply answer_whole(Database& db, const Viewer& viewer, const Question& question,
                   std::size_t most_bytes) {
  std::string text;
  Reply reply = answer(db, viewer, question, [&](std::string_view part) {
    text += part;
    return text.size() <= most_bytes;
  });
  if (reply.code == 0) reply.text = std::move(text);
  if (reply.text.size() <= most_bytes) return reply;
  return failed("the answer has more than " + std::to_string(most_bytes >> 20) +
                " MiB: ask for fewer jobs, or on the collector's host with --db FILE");
}

}  // namespace sphase
