#include "cli/export.h"

#include <cstdio>
#include <memory>

#include "collector/cluster_db.h"
#include "collector/report/export_rows.h"
#include "collector/report/format.h"
#include "collector/timeline/timeline_load.h"

namespace sphase {
namespace {

struct ExportArguments {
  std::vector<std::string> jobs;
  std::string db = default_cluster_path(), cluster, format = "jsonl";
  ExportOptions options;
};

int fail(const std::string& why, int code) {
  std::fputs(("sphase: " + clean(why) + '\n').c_str(), stderr);
  return code;
}

/// Runs of the jobs that were named, of all of them where none was.
Result<std::vector<std::int64_t>> chosen_runs(Database& db, const ExportArguments& arguments) {
  std::vector<std::int64_t> ids;
  if (arguments.jobs.empty()) {
    auto row = db.prepare("SELECT run_id FROM run ORDER BY start_ns");
    if (!row) return Error{row.error()};
    while (row->step()) ids.push_back(row->integer(0));
    if (auto read = row->status(); !read) return Error{read.error()};
    return ids;
  }
  for (const auto& name : arguments.jobs) {
    auto selector = parse_job_selector(name);
    if (!selector) return Error{selector.error()};
    selector->cluster = arguments.cluster;
    auto jobs = find_jobs(db, *selector);
    if (!jobs) return Error{jobs.error()};
    const std::size_t before = ids.size();
    for (const auto& job : *jobs) {
      auto keys = load_run_keys(db, job);
      if (!keys) return Error{keys.error()};
      for (const auto& key : *keys) {
        if (selector->step.empty() || key.step == selector->step) ids.push_back(key.run_id);
      }
    }
    if (ids.size() == before) return Error{"nothing was recorded of job " + name};
  }
  return ids;
}

int run_export(ExportArguments& arguments) {
  for (const auto& name : arguments.jobs) {
    if (auto selector = parse_job_selector(name); !selector) return fail(selector.error(), 2);
  }
  auto db = read_cluster(arguments.db);
  if (!db) return fail(db.error(), 1);
  auto runs = chosen_runs(*db, arguments);
  if (!runs) return fail(runs.error(), 1);
  arguments.options.run_ids = std::move(*runs);
  arguments.options.csv = arguments.format == "csv";
  const auto done = export_rows(*db, arguments.options, [](std::string_view line) {
    return std::fwrite(line.data(), 1, line.size(), stdout) == line.size();
  });
  if (!done) return fail(done.error(), 1);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? 0
                                                              : fail("cannot write the rows", 1);
}

}  // namespace

void add_export(CLI::App& app, int& code) {
  auto arguments = std::make_shared<ExportArguments>();
  auto* command = app.add_subcommand("export", "rows as they were recorded, for other programs");
  command->add_option("jobs", arguments->jobs, "123, 123_4, 123+1, each also with .STEP; none: all")
      ->type_name("JOB");
  command->add_option("-t,--table", arguments->options.table, "what to export")
      ->required()
      ->check(CLI::IsMember(exported_tables()));
  command->add_option("-f,--format", arguments->format, "jsonl (default): a JSON object per line")
      ->check(CLI::IsMember({"csv", "jsonl"}));
  command
      ->add_option("--db", arguments->db,
                   "cluster.db (default: $SPHASE_DB, or " + default_cluster_path() + ")")
      ->type_name("FILE");
  command->add_option("-M,--cluster", arguments->cluster, "where several clusters have this job id")
      ->type_name("NAME");
  command->footer(
      "Example:\n  sphase export 1234 --table sample --format csv > samples.csv\n"
      "Columns and units: common/schema/node.sql.");
  command->callback([arguments, &code] { code = run_export(*arguments); });
}

}  // namespace sphase
