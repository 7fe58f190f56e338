#include "cli/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sphase {
namespace {

[[noreturn]] void become(std::vector<char*>& argv, int out) {
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "cannot start %s: %s\n", argv[0], std::strerror(errno));
  _exit(127);
}

std::string read_to_end(int file) {
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = read(file, bytes, sizeof(bytes))) != 0;) {
    if (got > 0) text.append(bytes, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  return text;
}

}  // namespace

Result<CommandOutput> run_command(
    const std::vector<std::string>& words,
    const std::vector<std::pair<const char*, const char*>>& variables) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    become(argv, ends[1]);
  }
  close(ends[1]);
  CommandOutput output;
  if (child > 0) output.text = read_to_end(ends[0]);
  close(ends[0]);
  if (child < 0) return errno_error("fork");
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return output;
}

}  // namespace sphase
