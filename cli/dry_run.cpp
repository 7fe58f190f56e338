#include "cli/dry_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/result.h"

namespace sphase {
namespace {

struct Said {
  std::string text;
  int code = 0;
};

[[noreturn]] void become_sbatch(const std::vector<std::string>& arguments, int out) {
  std::vector<char*> words = {const_cast<char*>("sbatch")};
  words.reserve(arguments.size() + 2);
  for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  setenv("SPHASE_EXPLAIN", "1", 1);  // asks job_submit/phase_resize to say everything
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execvp("sbatch", words.data());
  std::fprintf(stderr, "cannot start sbatch: %s\n", std::strerror(errno));
  _exit(127);
}

Result<Said> run_sbatch(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
  const pid_t child = fork();
  if (child < 0) return errno_error("fork");
  if (child == 0) become_sbatch(arguments, ends[1]);
  close(ends[1]);
  Said said;
  char bytes[4096];
  for (ssize_t got = 0; (got = read(ends[0], bytes, sizeof(bytes))) != 0;) {
    if (got > 0) said.text.append(bytes, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return said;
}

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
  const auto said = run_sbatch(sbatch_arguments(words));
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
