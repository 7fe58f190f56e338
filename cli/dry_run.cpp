#include "cli/dry_run.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/run_command.h"

namespace sphase {
namespace {

constexpr const char* kSilent =
    "slurmctld said nothing of sphase: JobSubmitPlugins=phase_resize is not loaded there, or the "
    "job never came so far";

void print(const DryRun& result, int code, bool json) {
  if (json) {
    const nlohmann::ordered_json out = {
        {"explanation", result.explanation}, {"slurm", result.slurm}, {"sbatch_exit_code", code}};
    fmt::print("{}\n", out.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
    return;
  }
  for (const auto& line : result.explanation) fmt::print("{}\n", line);
  for (const auto& line : result.slurm) fmt::print("sbatch: {}\n", line);
}

int dry_run(const std::vector<std::string>& words, bool json) {
  if (words.empty()) {
    std::fputs("sphase: dry-run: which script? e.g. sphase dry-run job.sh --mem=8G\n", stderr);
    return 2;
  }
  std::vector<std::string> command = sbatch_arguments(words);
  command.insert(command.begin(), "sbatch");
  // Asks job_submit/phase_resize to say everything.
  const auto said = run_command(command, {{"SPHASE_EXPLAIN", "1"}});
  if (!said) {
    std::fprintf(stderr, "sphase: dry-run: %s\n", said.error().c_str());
    return 1;
  }
  const DryRun result = sort_lines(said->text);
  print(result, said->code, json);
  if (result.explanation.empty()) std::fprintf(stderr, "sphase: dry-run: %s\n", kSilent);
  return said->code == 0 && !result.explanation.empty() ? 0 : 1;
}

}  // namespace

void add_dry_run(CLI::App& app, int& code) {
  auto json = std::make_shared<bool>(false);
  auto* command = app.add_subcommand(
      "dry-run", "what a job would get, by sbatch --test-only: nothing is queued");
  command->add_flag("--json", *json, "for programs; before the script");
  command->prefix_command();
  command->footer(
      "SCRIPT [sbatch options]: slurmctld itself looks the job up and says what it would change.\n"
      "Example:\n  sphase dry-run job.sh --nodes=4 --phase-resize=apply");
  command->callback([command, json, &code] { code = dry_run(command->remaining(), *json); });
}

}  // namespace sphase
