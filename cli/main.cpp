// sphase: marks phases in a job script, reports what they used, and what was learned of it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string_view>

#include "cli/advice.h"
#include "cli/dry_run.h"
#include "cli/export.h"
#include "cli/mark.h"
#include "cli/profile.h"
#include "cli/report.h"
#include "cli/web.h"
#include "cli/why.h"

namespace {

bool is_mark(std::string_view word) {
  return word == "begin" || word == "end" || word == "value" || word == "attr" || word == "run";
}

constexpr const char* kFooter =
    "Marking phases in a job script (see `sphase begin --help`):\n"
    "  begin, end, value, attr, run\n\n"
    "Example:\n"
    "  sphase run solve -- srun ./solver      # in the job script\n"
    "  sphase report 1234                     # afterwards\n"
    "  sphase advice solver                   # after some runs with profile=solver";

int run(int argc, char** argv) {
  CLI::App app{
      "What each phase of a Slurm job asked for, got, and used, and what it should ask for.",
      "sphase"};
  app.set_version_flag("--version", "sphase " SPHASE_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  int code = 0;
  sphase::add_report(app, code);
  sphase::add_jobs(app, code);
  sphase::add_export(app, code);
  sphase::add_advice(app, code);
  sphase::add_plan(app, code);
  sphase::add_why(app, code);
  sphase::add_dry_run(app, code);
  sphase::add_profile(app, code);
  sphase::add_web(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "sphase: %s (try --help)\n", error.what());
    return 2;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  // A job script may mark often: nothing else is set up for it.
  if (argc > 1 && is_mark(argv[1])) return mark_main(argc, argv);
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sphase: %s\n", error.what());
    return 1;
  }
}
