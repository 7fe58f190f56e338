#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "collector/cluster_db.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"
#include "collector/timeline/job_list.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct JobsArguments {
  std::string db = default_cluster_path(), user;
  bool json = false;
};

template <typename T>
Json json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string as_json(const std::vector<JobLine>& lines) {
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

std::string as_text(const std::vector<JobLine>& lines) {
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

int jobs(const JobsArguments& arguments) {
  auto db = read_cluster(arguments.db);
  auto lines = db ? list_jobs(*db, arguments.user) : Error{db.error()};
  if (!lines) {
    std::fputs(("sphase: " + clean(lines.error()) + '\n').c_str(), stderr);
    return 1;
  }
  std::fputs((arguments.json ? as_json(*lines) : as_text(*lines)).c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

void add_jobs(CLI::App& app, int& code) {
  auto arguments = std::make_shared<JobsArguments>();
  auto* command = app.add_subcommand("jobs", "jobs that something is known of, oldest first");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db (default: $SPHASE_DB, or " + default_cluster_path() + ")")
      ->type_name("FILE");
  command->add_option("-u,--user", arguments->user, "of this user only (name or uid)")
      ->type_name("USER");
  command->add_flag("--json", arguments->json, "for programs");
  command->footer("Example:\n  sphase jobs --user alice");
  command->callback([arguments, &code] { code = jobs(*arguments); });
}

}  // namespace sphase
