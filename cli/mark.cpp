// Nothing in here may make a job script fail: under `set -e` an exit code other than 0 would end
// it. So a mistake is told on stderr and forgiven, a marker that cannot be recorded is silent, and
// `run` runs its command whatever else is wrong.
#include "cli/mark.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "marker/internal.h"
#include "marker/sphase.h"

namespace {

/// The recorder has read the counters of an edge by then, or is not well.
constexpr std::int64_t kEdgeLimitNs = 20'000'000;

struct Help {
  const char* word;
  const char* text;
};

constexpr Help kHelp[] = {
    {"begin",
     "usage: sphase begin NAME [--attr KEY=VALUE]...\n"
     "Opens the phase NAME of this job, inside the one that is open. Always exits 0.\n"
     "  sphase begin solve --attr cells=1e6\n"
     "  srun ./solver\n"
     "  sphase end solve\n"},
    {"end",
     "usage: sphase end [NAME]\n"
     "Closes the phase NAME and those inside it; without NAME the innermost. Always exits 0.\n"
     "  sphase begin stage; cp -r input \"$TMPDIR\"; sphase end stage\n"},
    {"value",
     "usage: sphase value NAME NUMBER\n"
     "Records a number at this moment in the phase that is open. Always exits 0.\n"
     "  sphase value residual 1.5e-7\n"},
    {"attr",
     "usage: sphase attr KEY VALUE\n"
     "Records a property of the phase that is open. Always exits 0.\n"
     "  sphase attr mesh fine\n"},
    {"run",
     "usage: sphase run NAME [--attr KEY=VALUE]... [--] COMMAND [ARGUMENT]...\n"
     "Runs COMMAND as the phase NAME and exits with its exit code (128 + n if signal n killed it,\n"
     "127 if it was not found). Signals sent to sphase are passed on to COMMAND.\n"
     "  sphase run solve --attr cells=1e6 -- srun ./solver\n"},
};

const char* help_of(std::string_view word) {
  for (const Help& help : kHelp) {
    if (word == help.word) return help.text;
  }
  return "";
}

/// One line on stderr. A stderr that nobody reads any more must not kill us.
void complain(const std::string& word, const std::string& what) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  std::fprintf(stderr, "sphase %s: %s; see: sphase %s --help\n", word.c_str(), what.c_str(),
               word.c_str());
  sigaction(SIGPIPE, &before, nullptr);
}

struct Arguments {
  std::string word;
  std::vector<const char*> names;  // what is neither option nor command
  std::vector<std::pair<std::string, std::string>> attributes;
  char** command = nullptr;  // of `run`; ends with nullptr
  bool help = false;
};

void add_attribute(Arguments& arguments, const char* text) {
  const char* equals = text == nullptr ? nullptr : std::strchr(text, '=');
  if (equals == nullptr || equals == text) {
    complain(arguments.word, "--attr needs KEY=VALUE");
  } else {
    arguments.attributes.emplace_back(std::string(text, equals), equals + 1);
  }
}

bool takes_attributes(std::string_view word) { return word == "begin" || word == "run"; }

/// Reads the option at argv[at] and returns the index of what follows it.
int read_option(Arguments& arguments, char** argv, int at) {
  const std::string_view option = argv[at];
  if (option == "--help" || option == "-h") {
    arguments.help = true;
  } else if (takes_attributes(arguments.word) && option == "--attr") {
    add_attribute(arguments, argv[at + 1]);
    return argv[at + 1] == nullptr ? at + 1 : at + 2;
  } else if (takes_attributes(arguments.word) && option.starts_with("--attr=")) {
    add_attribute(arguments, argv[at] + std::strlen("--attr="));
  } else {
    complain(arguments.word, "unknown option '" + std::string(option) + "' ignored");
  }
  return at + 1;
}

bool is_option(std::string_view word, const char* argument) {
  // A negative number is an operand of `value`, and a value of `attr` may be anything.
  if (word == "value" || word == "attr") {
    return std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0;
  }
  return argument[0] == '-' && argument[1] != '\0';
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.word = argv[1];
  const bool run = arguments.word == "run";
  bool options = true;
  int at = 2;
  while (at < argc) {
    if (options && std::strcmp(argv[at], "--") == 0) {
      options = false;
      ++at;
      if (run) break;
    } else if (options && is_option(arguments.word, argv[at])) {
      at = read_option(arguments, argv, at);
    } else if (run && !arguments.names.empty()) {
      break;  // NAME was there: this is the command
    } else {
      arguments.names.push_back(argv[at++]);
    }
  }
  if (run) arguments.command = argv + at;
  return arguments;
}

const char* name_at(const Arguments& arguments, std::size_t index) {
  return index < arguments.names.size() ? arguments.names[index] : nullptr;
}

/// The name, or nullptr after a complaint that it is missing.
const char* name_needed(const Arguments& arguments) {
  const char* name = name_at(arguments, 0);
  if (name == nullptr || name[0] == '\0') {
    complain(arguments.word, "NAME is missing");
    return nullptr;
  }
  return name;
}

void complain_about_rest(const Arguments& arguments, std::size_t used) {
  if (arguments.names.size() > used) {
    complain(arguments.word, "'" + std::string(arguments.names[used]) + "' ignored");
  }
}

void mark_begin(const Arguments& arguments, const char* name) {
  std::uint64_t position = 0;
  int recorded = sphase_mark_shell(SPHASE_BEGIN, name, nullptr, 0, &position);
  for (const auto& [key, value] : arguments.attributes) {
    recorded |= sphase_mark_shell(SPHASE_ATTR, key.c_str(), value.c_str(), 0, &position);
  }
  if (recorded != 0) sphase_wait_handled(position, kEdgeLimitNs);
}

void mark_end(const char* name) {
  std::uint64_t position = 0;
  if (sphase_mark_shell(SPHASE_END, name, nullptr, 0, &position) != 0) {
    sphase_wait_handled(position, kEdgeLimitNs);
  }
}

void begin(const Arguments& arguments) {
  if (const char* name = name_needed(arguments)) {
    complain_about_rest(arguments, 1);
    mark_begin(arguments, name);
  }
}

void end(const Arguments& arguments) {
  complain_about_rest(arguments, 1);
  mark_end(name_at(arguments, 0));
}

std::optional<double> number(const char* text) {
  if (text == nullptr || text[0] == '\0') return std::nullopt;
  char* rest = nullptr;
  const double value = std::strtod(text, &rest);
  if (*rest != '\0') return std::nullopt;
  return value;
}

void value(const Arguments& arguments) {
  const char* name = name_needed(arguments);
  if (name == nullptr) return;
  complain_about_rest(arguments, 2);
  if (const auto what = number(name_at(arguments, 1))) {
    sphase_mark_shell(SPHASE_VALUE, name, nullptr, *what, nullptr);
  } else {
    complain(arguments.word, "NUMBER is missing or not a number");
  }
}

void attr(const Arguments& arguments) {
  if (arguments.names.size() < 2 || arguments.names[0][0] == '\0') {
    complain(arguments.word, "KEY or VALUE is missing");
    return;
  }
  complain_about_rest(arguments, 2);
  sphase_mark_shell(SPHASE_ATTR, arguments.names[0], arguments.names[1], 0, nullptr);
}

// --- run ----------------------------------------------------------------------------------------

/// Becomes the command. Returns only if that fails: the code a shell would give.
int become(char** command) {
  execvp(command[0], command);
  const int code = errno == ENOENT ? 127 : 126;
  std::fprintf(stderr, "sphase run: %s: %s\n", command[0], std::strerror(errno));
  return code;
}

/// What is passed on to the command. Stops and continues reach it by the process group or not at
/// all, just as they would without us.
sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU}) {
    sigaddset(&set, signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&set, signal);
  return set;
}

/// While we only wait, a pipe or lock of the script's must not stay open on our account.
void close_everything() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
#endif
  for (int fd = 0; fd < 3; ++fd) close(fd);
}

/// Waits for the child, passing signals on. All of `set` and SIGCHLD are blocked.
int wait_for(pid_t child, sigset_t set) {
  sigaddset(&set, SIGCHLD);
  int status = 0;
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&set, &info);
    if (signal == SIGCHLD) {
      if (waitpid(child, &status, WNOHANG) != 0) break;  // else it was some other child
    } else if (signal > 0 && info.si_code != SI_KERNEL && info.si_pid != child) {
      kill(child, signal);  // one from the terminal (SI_KERNEL) went to the whole process group
    }
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Runs the command as a child with the signal mask and dispositions we were started with.
int run_child(char** command) {
  sigset_t blocked = passed_on();
  sigaddset(&blocked, SIGCHLD);
  sigset_t mask_before;
  struct sigaction fallback {};
  struct sigaction child_before {};
  fallback.sa_handler = SIG_DFL;
  sigprocmask(SIG_BLOCK, &blocked, &mask_before);
  sigaction(SIGCHLD, &fallback, &child_before);  // if it was ignored we could not wait
  const pid_t child = fork();
  if (child <= 0) {
    sigaction(SIGCHLD, &child_before, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before, nullptr);
    // No process to be had: become the command. Its phase is closed at the end of the step.
    if (child < 0) return become(command);
    _exit(become(command));
  }
  close_everything();
  return wait_for(child, passed_on());
}

int run(const Arguments& arguments) {
  if (arguments.command == nullptr || arguments.command[0] == nullptr) {
    complain(arguments.word, "COMMAND is missing");
    return 0;
  }
  const char* name = name_needed(arguments);
  if (name == nullptr || sphase_active() == 0) return become(arguments.command);
  mark_begin(arguments, name);
  const int code = run_child(arguments.command);
  mark_end(name);
  return code;
}

}  // namespace

int mark_main(int argc, char** argv) {
  if (argc < 2) return 0;
  const Arguments arguments = parse(argc, argv);
  if (arguments.help) {
    std::fputs(help_of(arguments.word), stdout);
  } else if (arguments.word == "begin") {
    begin(arguments);
  } else if (arguments.word == "end") {
    end(arguments);
  } else if (arguments.word == "value") {
    value(arguments);
  } else if (arguments.word == "attr") {
    attr(arguments);
  } else if (arguments.word == "run") {
    return run(arguments);
  }
  return 0;
}
