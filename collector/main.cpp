// sphase-collector: brings node databases and the scheduler's records into cluster.db, and learns
// from it.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "collector/learn_command.h"
#include "collector/merge_command.h"
#include "collector/serve_command.h"
#include "collector/watch_command.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "Brings what the nodes recorded, and what Slurm knows, into one database, and\n"
      "learns from it what jobs need.",
      "sphase-collector"};
  app.set_version_flag("--version", "sphase-collector " SPHASE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Example:\n  sphase-collector merge /var/spool/sphase --db cluster.db\n"
      "  sphase-collector watch /var/spool/sphase --interval 60s");
  int code = 0;
  sphase::add_merge(app, code);
  sphase::add_learn(app, code);
  sphase::add_watch(app, code);
  sphase::add_serve(app, code);
  sphase::add_node(app, code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "sphase-collector: %s (try --help)\n", error.what());
    return 2;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sphase-collector: %s\n", error.what());
    return 1;
  }
}
