#include "cli/dry_run.h"

#include <doctest/doctest.h>

#include "cli/run_command.h"

using namespace sphase;
using Words = std::vector<std::string>;

TEST_CASE("a script may stand before sbatch's options, where sbatch wants it behind them") {
  CHECK(sbatch_arguments({"job.sh"}) == Words{"--test-only", "job.sh"});
  CHECK(sbatch_arguments({"job.sh", "-N", "4"}) == Words{"--test-only", "-N", "4", "job.sh"});
  CHECK(sbatch_arguments({"-N", "4", "job.sh", "x"}) ==
        Words{"--test-only", "-N", "4", "job.sh", "x"});
}

TEST_CASE("sphase's lines are told from Slurm's") {
  const DryRun result = sort_lines(
      "sbatch: sphase: profile 1001/a\nsbatch: sphase: nodes 4 -> 1: would be changed\n"
      "sbatch: Job 3 to start at noon\n\nallocation failure: no\n");
  CHECK(result.explanation == Words{"profile 1001/a", "nodes 4 -> 1: would be changed"});
  CHECK(result.slurm == Words{"Job 3 to start at noon", "allocation failure: no"});
}

TEST_CASE("what comes from outside cannot steer a terminal") {
  const DryRun result = sort_lines("sbatch: sphase: \x1b[2Jx\n");
  CHECK(result.explanation.front().find('\x1b') == std::string::npos);
}

TEST_CASE("a command's output and exit code come back; one that is not there is said") {
  const auto done = run_command({"sh", "-c", "echo $A; echo b >&2; exit 3"}, {{"A", "x y"}});
  REQUIRE(done);
  CHECK(done->text == "x y\nb\n");
  CHECK(done->code == 3);
  const auto absent = run_command({"/nonexistent/command"});
  REQUIRE(absent);
  CHECK(absent->code == 127);
  CHECK(absent->text.find("cannot start /nonexistent/command: No such file") == 0);
}
