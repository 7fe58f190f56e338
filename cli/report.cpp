#include "cli/report.h"

#include <cstdio>
#include <memory>

#include "cli/ask.h"
#include "cli/write_file.h"
#include "collector/report/format.h"

namespace sphase {
namespace {

int write_page(const Asked& asked, const std::string& file) {
  std::string page;
  const Reply reply = reply_to(asked, [&](std::string_view part) {
    page += part;
    return true;
  });
  if (reply.code != 0) return tell_problem(reply);
  if (auto written = write_file(file, page); !written) return tell_problem({1, written.error()});
  std::fputs(("wrote " + clean(file) + '\n').c_str(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

void add_report(CLI::App& app, int& code) {
  struct Arguments : Asked {
    std::string job, html;
    bool json = false, csv = false;
  };
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("report", "what each phase of a job got and used");
  command->add_option("job", arguments->job, "123, 123_4, 123+1, each also with .STEP")
      ->required()
      ->type_name("JOB");
  add_places(*command, *arguments);
  Question& question = arguments->question;
  command->add_option("-M,--cluster", question.cluster, "where several clusters have this job id")
      ->type_name("NAME");
  auto* json = command->add_flag("--json", arguments->json, "everything, for programs");
  auto* csv = command->add_flag("--csv", arguments->csv, "the table, for programs")->excludes(json);
  command
      ->add_option("--html", arguments->html,
                   "one page with lanes and charts that opens from disk; - is stdout")
      ->type_name("FILE")
      ->excludes(json)
      ->excludes(csv);
  command->add_flag("--instances", question.instances, "a row for each instance");
  command->add_flag("--nodes", question.nodes,
                    "every node (--json: of every row; --csv: nodes instead of phases)");
  command->add_flag("--all", question.all,
                    "earlier jobs of the same number and every task of an array, too");
  command->footer(
      "Example:\n  sphase report 1234\n  sphase report 1234_7.0 --instances\n"
      "  sphase report 1234 --html job.html     # then open it in a browser");
  command->callback([arguments, &code] {
    Question& asked = arguments->question;
    asked.command = "report";
    asked.jobs = {arguments->job};
    asked.format = arguments->json ? "json" : arguments->csv ? "csv" : "text";
    if (!arguments->html.empty()) asked.format = "html";
    const bool to_file = !arguments->html.empty() && arguments->html != "-";
    code = to_file ? write_page(*arguments, arguments->html) : ask(*arguments);
  });
}

}  // namespace sphase
