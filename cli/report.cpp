#include "cli/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/write_file.h"
#include "collector/cluster_db.h"
#include "collector/page/page.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"

namespace sphase {
namespace {

struct ReportArguments {
  std::string job, db = default_cluster_path(), cluster, html;
  bool json = false, csv = false, all = false;
  ReportOptions options;
};

int fail(const std::string& why, int code) {
  std::fputs(("sphase: " + clean(why) + '\n').c_str(), stderr);
  return code;
}

int print(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  return written && std::fflush(stdout) == 0 ? 0 : fail("cannot write the report", 1);
}

int write_page(const std::vector<Timeline>& starts, const std::string& file) {
  const std::string page = page_html(page_data(starts));
  if (file == "-") return print(page);
  if (auto written = write_file(file, page); !written) return fail(written.error(), 1);
  return print("wrote " + clean(file) + '\n');
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
  if (!arguments.html.empty()) return write_page(*starts, arguments.html);
  const auto printer = arguments.json ? report_json : arguments.csv ? report_csv : report_text;
  return print(printer(*starts, arguments.options));
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
  auto* csv = command->add_flag("--csv", arguments->csv, "the table, for programs")->excludes(json);
  command
      ->add_option("--html", arguments->html,
                   "one page with lanes and charts that opens from disk; - is stdout")
      ->type_name("FILE")
      ->excludes(json)
      ->excludes(csv);
  command->add_flag("--instances", arguments->options.instances, "a row for each instance");
  command->add_flag("--nodes", arguments->options.nodes,
                    "every node (--json: of every row; --csv: nodes instead of phases)");
  command->add_flag("--all", arguments->all,
                    "earlier jobs of the same number and every task of an array, too");
  command->footer(
      "Example:\n  sphase report 1234\n  sphase report 1234_7.0 --instances\n"
      "  sphase report 1234 --html job.html     # then open it in a browser");
  command->callback([arguments, &code] { code = report(*arguments); });
}

}  // namespace sphase
