#include "cli/export.h"

#include <memory>

#include "cli/ask.h"
#include "collector/report/export_rows.h"

namespace sphase {

void add_export(CLI::App& app, int& code) {
  auto asked = std::make_shared<Asked>();
  Question& question = asked->question;
  question.command = "export";
  question.format = "jsonl";
  auto* command = app.add_subcommand("export", "rows as they were recorded, for other programs");
  command->add_option("jobs", question.jobs, "123, 123_4, 123+1, each also with .STEP; none: all")
      ->type_name("JOB");
  command->add_option("-t,--table", question.table, "what to export")
      ->required()
      ->check(CLI::IsMember(exported_tables()));
  command->add_option("-f,--format", question.format, "jsonl (default): a JSON object per line")
      ->check(CLI::IsMember({"csv", "jsonl"}));
  add_places(*command, *asked);
  command->add_option("-M,--cluster", question.cluster, "where several clusters have this job id")
      ->type_name("NAME");
  command->footer(
      "Example:\n  sphase export 1234 --table sample --format csv > samples.csv\n"
      "Columns and units: common/schema/node.sql.");
  command->callback([asked, &code] { code = ask(*asked); });
}

}  // namespace sphase
