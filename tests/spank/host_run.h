// Runs fake_host and reads what it printed.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "common/note_file.h"
#include "common/sqlite_db.h"
#include "tests/common/tools.h"

namespace sphase::testing {

/// Where a run of the host keeps everything.
class HostPlace {
  TempFolder folder_;  // first: the paths below lie in it

 public:
  std::string recorder = SPHASE_TEST_RECORDER;
  std::string run_dir = folder_ / "run";
  std::string node_db = folder_ / "db/%n/node.db";

  HostPlace() { setenv("SLURMD_NODENAME", "fake1", 1); }
  const TempFolder& folder() const { return folder_; }
  std::string db_path() const { return folder_ / "db/fake1/node.db"; }
  std::vector<NoteFile> notes() const { return read_notes(run_dir + "/notes"); }
  /// Its first column's first row; nothing where there is no database or no row.
  std::optional<std::string> text(const std::string& sql) const {
    auto db = Database::open(db_path(), Database::Mode::kReadOnly);
    if (!db) return std::nullopt;
    auto query = db->prepare(sql);
    if (!query || !query->step()) return std::nullopt;
    return query->text(0);
  }
  std::string script(const std::string& body) {
    std::string path = folder_.write("fake-recorder", "#!/bin/sh\n" + body + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    const std::string plugin = "plugin=" SPHASE_TEST_PLUGIN;
    std::vector<std::string> all = {SPHASE_TEST_HOST, plugin, "arg:run_dir=" + run_dir,
                                    "arg:node_db=" + node_db, "arg:recorder=" + recorder};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

struct HookLine {
  std::string name;
  int rc = -1;
  long ms = -1;
  int threads = -1;
  int strangers = -1;
};

struct HostResult {
  int exit_code = -1;
  std::string text;
  std::vector<HookLine> hooks;

  bool has(const std::string& part) const { return text.find(part) != std::string::npos; }
  long total_ms() const {
    long sum = 0;
    for (const HookLine& line : hooks) sum += line.ms;
    return sum;
  }
};

/// A host that is running; its output is a pipe.
class Host {
 public:
  explicit Host(const std::vector<std::string>& words) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      dup2(ends[1], 1);
      dup2(ends[1], 2);
      setenv("LD_BIND_NOW", "1", 1);
      std::vector<char*> argv;
      argv.reserve(words.size() + 1);
      for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  ~Host() {
    if (pid_ > 0) kill_now();
    close(out_);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  pid_t pid() const { return pid_; }

  /// Reads until `part` was printed.
  bool wait_for_text(const std::string& part, int limit_ms = 20'000) {
    return poll_until(
        [&] {
          pollfd ready{out_, POLLIN, 0};
          char buffer[4096];
          if (poll(&ready, 1, 0) == 1) {
            const ssize_t size = read(out_, buffer, sizeof(buffer));
            if (size > 0) text_.append(buffer, static_cast<std::size_t>(size));
          }
          return text_.find(part) != std::string::npos;
        },
        limit_ms);
  }
  void kill_now() {
    kill(pid_, SIGKILL);
    wait_for(pid_);
    pid_ = -1;
  }
  HostResult finish() {
    char buffer[4096];
    ssize_t size = 0;
    while ((size = read(out_, buffer, sizeof(buffer))) > 0) {
      text_.append(buffer, static_cast<std::size_t>(size));
    }
    HostResult result;
    result.exit_code = wait_for(pid_);
    pid_ = -1;
    result.text = text_;
    parse(result);
    return result;
  }

 private:
  static void parse(HostResult& result) {
    std::size_t at = 0;
    while ((at = result.text.find("hook ", at)) != std::string::npos) {
      HookLine line;
      char name[64] = "";
      if (std::sscanf(result.text.c_str() + at, "hook %63s rc=%d ms=%ld threads=%d strangers=%d",
                      name, &line.rc, &line.ms, &line.threads, &line.strangers) == 5) {
        line.name = name;
        result.hooks.push_back(line);
      }
      at += 5;
    }
  }

  pid_t pid_ = -1;
  int out_ = -1;
  std::string text_;
};

inline HostResult run_host(const HostPlace& place, const std::vector<std::string>& words) {
  return Host(place.words(words)).finish();
}

}  // namespace sphase::testing
