#include "collector/report/jobs_print.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collector/report/format.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string jobs_json(const std::vector<JobLine>& lines) {
  Json jobs = Json::array();
  for (const auto& line : lines) {
    jobs.push_back({{"cluster", line.job.cluster},
                    {"job_id", line.job.job_id},
                    {"restart_count", line.job.restart_count},
                    {"array_job_id", json(line.job.array_job_id)},
                    {"array_task_id", json(line.job.array_task_id)},
                    {"het_job_id", json(line.job.het_job_id)},
                    {"het_offset", json(line.job.het_offset)},
                    {"name", json(line.job.name)},
                    {"user", json(line.job.user)},
                    {"uid", json(line.job.uid)},
                    {"state", json(line.job.state)},
                    {"begin_ns", json(line.begin_ns)},
                    {"end_ns", json(line.end_ns)},
                    {"nodes", line.nodes},
                    {"steps", line.steps},
                    {"phases", line.phases}});
  }
  return Json{{"jobs", jobs}}.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

std::string jobs_text(const std::vector<JobLine>& lines) {
  Table table;
  table.column("job", Table::Align::kLeft);
  for (const char* title : {"start", "user", "state"}) table.column(title, Table::Align::kLeft);
  table.column("began", Table::Align::kLeft);
  for (const char* title : {"time", "nodes", "steps", "phases"}) {
    table.column(title, Table::Align::kRight);
  }
  table.column("name", Table::Align::kLeft);
  for (const auto& line : lines) {
    Maybe took;
    if (line.begin_ns && line.end_ns)
      took = std::max<std::int64_t>(0, *line.end_ns - *line.begin_ns);
    table.row(
        {job_label(line.job), std::to_string(line.job.restart_count + 1),
         line.job.user
             ? clean(*line.job.user)
             : or_dash(line.job.uid, [](std::int64_t uid) { return "uid " + std::to_string(uid); }),
         or_dash(line.job.state),
         or_dash(line.begin_ns, [](std::int64_t ns) { return format_time(ns / 1'000'000'000); }),
         or_dash(took, format_duration), std::to_string(line.nodes), std::to_string(line.steps),
         std::to_string(line.phases), or_dash(line.job.name)});
  }
  return table.empty() ? "no job is known yet: `sphase-collector merge` brings some in\n"
                       : table.print();
}

}  // namespace sphase
