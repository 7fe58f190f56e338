// The subcommands begin, end, value, attr and run, as programs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "common/ring.h"
#include "tests/marker/fake_reader.h"
#include "tests/marker/in_child.h"

using sphase::testing::FakeReader;
using sphase::testing::FakeSetup;
using sphase::testing::Marker;

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int code;  // 128 + n if signal n killed it
  std::string out;
  std::string err;
  double ms;
};

std::vector<char*> pointers(const Words& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

/// Our environment, with SPHASE_SOCKET = `socket`, or without it.
Words environment_with(const std::string& socket) {
  Words all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string(*entry).rfind("SPHASE_", 0) != 0) all.emplace_back(*entry);
  }
  if (!socket.empty()) all.push_back(std::string(SPHASE_SOCKET_ENV) + "=" + socket);
  return all;
}

/// A program started with pipes at its three streams.
class Program {
 public:
  Program(const std::string& program, const Words& words, const std::string& socket)
      : start_(std::chrono::steady_clock::now()) {
    int pipes[3][2];
    for (auto& ends : pipes) {
      if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    }
    const Words environment = environment_with(socket);
    const auto argv = pointers(words);
    const auto envp = pointers(environment);
    pid_ = fork();
    if (pid_ == 0) {  // other threads run: only what a signal handler may do, too
      alarm(40);
      dup2(pipes[0][0], 0);
      dup2(pipes[1][1], 1);
      dup2(pipes[2][1], 2);
      execvpe(program.c_str(), argv.data(), envp.data());
      _exit(99);
    }
    close(pipes[0][0]);
    close(pipes[1][1]);
    close(pipes[2][1]);
    in_ = pipes[0][1];
    out_ = pipes[1][0];
    err_ = pipes[2][0];
  }

  pid_t pid() const { return pid_; }
  void type(const std::string& text) const {
    CHECK(write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::string read_line() const {
    std::string line;
    char byte = 0;
    while (read(out_, &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }
  Outcome finish() {
    close(in_);
    Outcome outcome{0, rest_of(out_), rest_of(err_), 0};
    int status = 0;
    waitpid(pid_, &status, 0);
    outcome.ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
            .count();
    outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return outcome;
  }

 private:
  static std::string rest_of(int fd) {
    std::string all;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
      all.append(buffer, static_cast<std::size_t>(n));
    close(fd);
    return all;
  }

  std::chrono::steady_clock::time_point start_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
};

Program start(const std::string& socket, Words words) {
  words.insert(words.begin(), "sphase");
  return {SPHASE_TEST_COMMAND, words, socket};
}

Outcome run(const std::string& socket, const Words& words) { return start(socket, words).finish(); }

bool is_silent_success(const Outcome& outcome) {
  return outcome.code == 0 && outcome.out.empty() && outcome.err.empty();
}

bool is_forgiven_mistake(const Outcome& outcome) {
  return outcome.code == 0 && outcome.out.empty() &&
         std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1;
}

/// "+solve :cells=1e6 -solve": all must be shell markers.
std::string written(FakeReader& reader) {
  std::string all;
  for (Marker marker : reader.all_markers()) {
    CHECK(marker.raw.flags == SPHASE_FLAG_SHELL);
    CHECK(marker.raw.depth == SPHASE_DEPTH_UNKNOWN);
    std::replace(marker.text.begin(), marker.text.end(), '\0', '=');
    all += all.empty() ? "" : " ";
    all += "?+-=:"[marker.raw.type] + marker.text;
  }
  return all;
}

const Words kEach[] = {{"begin", "solve"},
                       {"begin", "solve", "--attr", "cells=1e6"},
                       {"end"},
                       {"end", "solve"},
                       {"value", "x", "-1.5"},
                       {"attr", "mesh", "fine"},
                       {"run", "x", "true"}};

}  // namespace

TEST_CASE("without the plugin each subcommand exits 0 and prints nothing") {
  for (const Words& words : kEach) CHECK(is_silent_success(run("", words)));
  for (const Words& words : kEach) CHECK(is_silent_success(run("/nonexistent/socket", words)));
}

TEST_CASE("with the plugin each subcommand exits 0, prints nothing and marks for the task") {
  FakeReader reader;
  for (const Words& words : kEach) CHECK(is_silent_success(run(reader.serve(), words)));
  CHECK(written(reader) == "+solve +solve :cells=1e6 - -solve =x :mesh=fine +x -x");
  CHECK(reader.markers()[5].raw.value == -1.5);
}

TEST_CASE("begin and end return when the reader has handled their edge") {
  FakeSetup setup;
  setup.nap_ms = 3;
  FakeReader reader(setup);
  for (int i = 0; i < 10; ++i) {
    CHECK(is_silent_success(run(reader.serve(), {"begin", "solve", "--attr=k=v"})));
    CHECK(reader.is_settled());
    CHECK(is_silent_success(run(reader.serve(), {"end", "solve"})));
    CHECK(reader.is_settled());
  }
}

TEST_CASE("begin waits 20 ms for a reader that hangs, no longer") {
  FakeSetup setup;
  setup.drains = false;
  FakeReader reader(setup);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = run(reader.serve(), {"begin", "solve"});
    CHECK(is_silent_success(outcome));
    CHECK(outcome.ms >= 20);
    best = std::min(best, outcome.ms);
  }
  CHECK(best < (sphase::testing::kSanitized ? 500 : 60));
}

TEST_CASE("a mistake is told in one line and forgiven") {
  FakeReader reader;
  for (const std::string& socket : {std::string(), reader.serve()}) {
    for (const Words& words : std::vector<Words>{{"begin"},
                                                 {"begin", ""},
                                                 {"begin", "a", "b"},
                                                 {"begin", "a", "--attr"},
                                                 {"begin", "a", "--attr", "novalue"},
                                                 {"begin", "a", "--attr", "=x"},
                                                 {"begin", "a", "--colour"},
                                                 {"end", "a", "b"},
                                                 {"end", "--attr", "k=v", "--"},
                                                 {"value"},
                                                 {"value", "x"},
                                                 {"value", "x", "much"},
                                                 {"value", "x", ""},
                                                 {"attr", "k"},
                                                 {"attr", "", "v"},
                                                 {"run"},
                                                 {"run", "solve"},
                                                 {"run", "solve", "--"}}) {
      if (words[0] == "end" && words.size() == 4) continue;
      INFO(words[0] << " with " << words.size() - 1 << " arguments");
      CHECK(is_forgiven_mistake(run(socket, words)));
    }
  }
}

TEST_CASE("a mistake told to a closed stderr is forgiven too") {
  const Outcome outcome =
      Program("/bin/sh", {"sh", "-c", std::string(SPHASE_TEST_COMMAND) + " begin 2>&-; echo $?"},
              "")
          .finish();
  CHECK(outcome.out == "0\n");
}

TEST_CASE("--help prints an example and exits 0") {
  for (const std::string word : {"begin", "end", "value", "attr", "run"}) {
    const Outcome outcome = run("", {word, "--help"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.find("usage: sphase " + word) == 0);
    CHECK(outcome.out.find("\n  sphase ") != std::string::npos);
  }
}

TEST_CASE("run exits with the command's code, with and without the plugin") {
  FakeReader reader;
  for (const std::string& socket : {std::string(), reader.serve()}) {
    CHECK(run(socket, {"run", "x", "--", "true"}).code == 0);
    CHECK(run(socket, {"run", "x", "--", "sh", "-c", "exit 7"}).code == 7);
    CHECK(run(socket, {"run", "x", "--", "sh", "-c", "exit 255"}).code == 255);
    CHECK(run(socket, {"run", "x", "--", "sh", "-c", "kill -9 $$"}).code == 137);
    CHECK(run(socket, {"run", "x", "--", "sh", "-c", "kill -TERM $$"}).code == 143);
    const Outcome missing = run(socket, {"run", "x", "--", "/nonexistent/command"});
    CHECK(missing.code == 127);
    CHECK(missing.err.find("/nonexistent/command: No such file") != std::string::npos);
    CHECK(run(socket, {"run", "x", "--", "/etc/passwd"}).code == 126);
  }
  CHECK(written(reader) == "+x -x +x -x +x -x +x -x +x -x +x -x +x -x");
}

TEST_CASE("run finds its command with and without --, and runs it whatever else is wrong") {
  FakeReader reader;
  for (const std::string& socket : {std::string(), reader.serve()}) {
    const Words echo = {"echo", "-n", "--attr", "x"};
    for (Words words : std::vector<Words>{{"run", "n"},
                                          {"run", "n", "--"},
                                          {"run", "--attr", "k=v", "n"},
                                          {"run", "n", "--attr", "k=v", "--"},
                                          {"run", "n", "--colour=red", "--"},
                                          {"run", "--"},
                                          {"run", "", "--"}}) {
      words.insert(words.end(), echo.begin(), echo.end());
      const Outcome outcome = run(socket, words);
      CHECK(outcome.code == 0);
      CHECK(outcome.out == "--attr x");
    }
  }
  CHECK(written(reader) == "+n -n +n -n +n :k=v -n +n :k=v -n +n -n");
}

TEST_CASE("run leaves the standard streams to the command") {
  FakeReader reader;
  for (const std::string& socket : {std::string(), reader.serve()}) {
    Program cat = start(socket, {"run", "x", "--", "cat"});
    cat.type("one\n");
    CHECK(cat.read_line() == "one");
    cat.type("two");
    const Outcome outcome = cat.finish();
    CHECK(outcome.out == "two");
    CHECK(outcome.err.empty());
    CHECK(outcome.code == 0);
  }
}

TEST_CASE("run holds no pipe open that the command has closed") {
  FakeReader reader;
  Program program =
      start(reader.serve(), {"run", "x", "--", "sh", "-c", "echo on; exec >&- 2>&-; read line"});
  CHECK(program.read_line() == "on");
  CHECK(program.read_line().empty());  // end of file, although the command still runs
  program.type("off\n");
  CHECK(program.finish().code == 0);
}

TEST_CASE("run passes signals on to the command, and still ends the phase") {
  FakeReader reader;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) {
    for (const std::string& socket : {std::string(), reader.serve()}) {
      const std::string script =
          "trap 'exit 5' TERM INT HUP USR1 USR2 QUIT; echo ready; "
          "while :; do sleep 0.01; done";
      Program program = start(socket, {"run", "x", "--", "sh", "-c", script});
      CHECK(program.read_line() == "ready");
      kill(program.pid(), signal);
      CHECK(program.finish().code == 5);
    }
  }
  CHECK(written(reader) == "+x -x +x -x +x -x +x -x +x -x +x -x");
}

TEST_CASE("a command killed by a signal that was passed on gives 128 + n") {
  FakeReader reader;
  Program program =
      start(reader.serve(), {"run", "x", "--", "sh", "-c", "echo ready; exec sleep 30"});
  CHECK(program.read_line() == "ready");
  kill(program.pid(), SIGTERM);
  CHECK(program.finish().code == 128 + SIGTERM);
  CHECK(written(reader) == "+x -x");
}

TEST_CASE("the command has the signal mask and dispositions that run was started with") {
  FakeReader reader;
  const std::string show = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
  const std::string with = "trap '' HUP CHLD; exec ";
  const auto shown = [&](const std::string& socket, const std::string& prefix) {
    return Program("/bin/sh", {"sh", "-c", with + prefix + show}, socket).finish().out;
  };
  const std::string plain = shown("", "");
  CHECK(plain.find("SigIgn") != std::string::npos);
  CHECK(shown(reader.serve(), std::string(SPHASE_TEST_COMMAND) + " run x -- ") == plain);
  CHECK(shown("", std::string(SPHASE_TEST_COMMAND) + " run x -- ") == plain);
  CHECK(written(reader) == "+x -x");
}

TEST_CASE("phases of a command inside run belong to its own process") {
  FakeReader reader;
  CHECK(run(reader.serve(), {"run", "outer", "--", SPHASE_TEST_COMMAND, "begin", "inner"}).code ==
        0);
  CHECK(written(reader) == "+outer +inner -outer");
  CHECK(reader.clients() == 2);
}

TEST_CASE("a marker inside a user and mount namespace arrives (needs user namespaces)") {
  if (Program("unshare", {"unshare", "-Urm", "true"}, "").finish().code != 0) {
    MESSAGE("skipped: user namespaces are forbidden here");
    return;
  }
  FakeReader reader;
  const Outcome outcome =
      Program("unshare", {"unshare", "-Urm", SPHASE_TEST_COMMAND, "begin", "contained"},
              reader.serve())
          .finish();
  CHECK(is_silent_success(outcome));
  CHECK(written(reader) == "+contained");
}
