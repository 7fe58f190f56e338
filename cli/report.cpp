#include "cli/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/format.h"
#include "cli/report_print.h"
#include "collector/cluster_db.h"

namespace sphase {
namespace {

struct ReportArguments {
  std::string job, db = default_cluster_path(), cluster;
  bool json = false, csv = false, all = false;
  ReportOptions options;
};

int fail(const std::string& why, int code) {
  std::fputs(("sphase: " + clean(why) + '\n').c_str(), stderr);
  return code;
}

int report(const ReportArguments& arguments) {
  auto selector = parse_job_selector(arguments.job);
  if (!selector) return fail(selector.error(), 2);
  selector->cluster = arguments.cluster;
  selector->every = arguments.all;
  auto db = read_cluster(arguments.db);
  if (!db) return fail(db.error(), 1);
  auto starts = load_timelines(*db, *selector);
  if (!starts) return fail(starts.error(), 1);
  const auto print = arguments.json ? report_json : arguments.csv ? report_csv : report_text;
  const std::string text = print(*starts, arguments.options);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : fail("cannot write the report", 1);
}

}  // namespace

void add_report(CLI::App& app, int& code) {
  auto arguments = std::make_shared<ReportArguments>();
  auto* command = app.add_subcommand("report", "what each phase of a job got and used");
  command->add_option("job", arguments->job, "123, 123_4, 123+1, each also with .STEP")
      ->required()
      ->type_name("JOB");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db (default: $SPHASE_DB, or " + default_cluster_path() + ")")
      ->type_name("FILE");
  command->add_option("-M,--cluster", arguments->cluster, "where several clusters have this job id")
      ->type_name("NAME");
  auto* json = command->add_flag("--json", arguments->json, "everything, for programs");
  command->add_flag("--csv", arguments->csv, "the table, for programs")->excludes(json);
  command->add_flag("--instances", arguments->options.instances, "a row for each instance");
  command->add_flag("--nodes", arguments->options.nodes,
                    "every node (--json: of every row; --csv: nodes instead of phases)");
  command->add_flag("--all", arguments->all,
                    "earlier jobs of the same number and every task of an array, too");
  command->footer("Example:\n  sphase report 1234\n  sphase report 1234_7.0 --instances");
  command->callback([arguments, &code] { code = report(*arguments); });
}

}  // namespace sphase
