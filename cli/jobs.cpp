#include <memory>

#include "cli/ask.h"
#include "cli/report.h"

namespace sphase {

void add_jobs(CLI::App& app, int& code) {
  auto asked = std::make_shared<Asked>();
  asked->question.command = "jobs";
  auto* command = app.add_subcommand("jobs", "jobs that something is known of, oldest first");
  add_places(*command, *asked);
  command->add_option("-u,--user", asked->question.user, "of this user only (name or uid)")
      ->type_name("USER");
  command->add_flag_callback(
      "--json", [asked] { asked->question.format = "json"; }, "for programs");
  command->footer("Example:\n  sphase jobs --user alice");
  command->callback([asked, &code] { code = ask(*asked); });
}

}  // namespace sphase
