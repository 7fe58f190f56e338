// With a real munged of our own, in a folder of its own.
#include "collector/wire/credential.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <memory>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr const char* kMunged = "/usr/sbin/munged";

/// Runs while it lives. Needs no root: munged serves whoever started it.
class Munged {
 public:
  explicit Munged(char key) {
    chmod(folder_.path().c_str(), 0755);  // munged refuses a folder that others cannot enter
    folder_.write("munge.key", std::string(128, key));
    chmod((folder_ / "munge.key").c_str(), 0400);
    pid_ = start_child([&] {
      const std::string socket = "--socket=" + place().socket;
      const std::string key_file = "--key-file=" + (folder_ / "munge.key");
      const std::string pid = "--pid-file=" + (folder_ / "pid");
      const std::string seed = "--seed-file=" + (folder_ / "seed");
      const std::string log = "--log-file=" + (folder_ / "log");
      dup2(open((folder_ / "stderr").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      execl(kMunged, kMunged, "--foreground", "--force", socket.c_str(), key_file.c_str(),
            pid.c_str(), seed.c_str(), log.c_str(), nullptr);
      return 127;
    });
  }
  ~Munged() {
    kill(pid_, SIGTERM);
    wait_for(pid_);
  }
  Munged(const Munged&) = delete;
  Munged& operator=(const Munged&) = delete;

  MungePlace place() const { return {folder_ / "socket"}; }
  std::string log() const { return text_of(folder_ / "log"); }
  bool answers() const {
    return poll_until([&] { return make_credential(place(), "").operator bool(); });
  }

 private:
  TempFolder folder_;
  pid_t pid_ = -1;
};

/// nullptr: there is none on this host, which was said.
std::unique_ptr<Munged> munged(char key = 'k') {
  if (access(kMunged, X_OK) != 0) {
    MESSAGE("skipped: munged is not installed");
    return nullptr;
  }
  auto daemon = std::make_unique<Munged>(key);
  const bool answers = daemon->answers();
  REQUIRE_MESSAGE(answers, daemon->log());
  return daemon;
}

std::string must_make(const Munged& daemon, std::string_view payload) {
  auto credential = make_credential(daemon.place(), payload);
  REQUIRE_MESSAGE(credential, (credential ? "" : credential.error()));
  return *credential;
}

std::string error_of(const Munged& daemon, const std::string& credential) {
  const auto caller = read_credential(daemon.place(), credential);
  return caller ? "" : caller.error();
}

}  // namespace

TEST_CASE("a credential tells who made it, and brings its payload, any bytes of it") {
  const auto daemon = munged();
  if (!daemon) return;
  for (const std::string& payload :
       {std::string("hello"), std::string(), std::string("a\0b\xff", 4), std::string(5000, 'x')}) {
    const auto caller = read_credential(daemon->place(), must_make(*daemon, payload));
    REQUIRE_MESSAGE(caller, (caller ? "" : caller.error()));
    CHECK(caller->uid == geteuid());
    CHECK(caller->payload == payload);
  }
}

TEST_CASE("a credential is good once") {
  const auto daemon = munged();
  if (!daemon) return;
  const std::string credential = must_make(*daemon, "x");
  CHECK(error_of(*daemon, credential) == "");
  CHECK(error_of(*daemon, credential) == "MUNGE: Replayed credential");
}

TEST_CASE("what is no credential, is cut or altered, is an error of one sentence") {
  const auto daemon = munged();
  if (!daemon) return;
  const std::string credential = must_make(*daemon, "hello");
  std::vector<std::string> bad = {"",
                                  "x",
                                  "MUNGE:",
                                  "MUNGE::",
                                  std::string(100'000, 'A'),
                                  std::string("\0MUNGE", 6),
                                  "MUNGE:" + std::string(500, '=')};
  for (std::size_t size = 0; size + 1 < credential.size(); size += 7) {
    bad.push_back(credential.substr(0, size));
  }
  for (std::size_t at = 6; at + 5 < credential.size(); at += 5) {
    std::string altered = credential;
    altered[at] = altered[at] == 'A' ? 'B' : 'A';
    bad.push_back(altered);
  }
  for (const auto& bytes : bad) {
    CAPTURE(bytes);
    const std::string error = error_of(*daemon, bytes);
    CHECK(error.rfind("MUNGE: ", 0) == 0);
    CHECK(error.find('\n') == std::string::npos);
  }
  CHECK(error_of(*daemon, credential) == "");  // none of these has used it up
}

TEST_CASE("a credential that was made with another key is refused") {
  const auto ours = munged();
  if (!ours) return;
  const auto theirs = munged('t');
  CHECK(error_of(*ours, must_make(*theirs, "x")) == "MUNGE: Invalid credential");
}

TEST_CASE("where no munged listens, both ways are errors") {
  const MungePlace nowhere{"/nonexistent/socket"};
  const auto made = make_credential(nowhere, "x");
  REQUIRE_FALSE(made);
  CHECK(made.error().rfind("MUNGE: ", 0) == 0);
  const auto read = read_credential(nowhere, "MUNGE:x:");
  REQUIRE_FALSE(read);
  CHECK(read.error().rfind("MUNGE: ", 0) == 0);
}
