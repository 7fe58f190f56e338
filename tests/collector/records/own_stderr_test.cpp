#include "collector/records/own_stderr.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

void say(const char* text) {
  const auto length = static_cast<ssize_t>(std::strlen(text));
  REQUIRE(::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) == length);
}

/// Descriptor 2 leads to a file while it lives.
class StderrInFile {
 public:
  explicit StderrInFile(const std::string& path) : saved_(::dup(STDERR_FILENO)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  StderrInFile(const StderrInFile&) = delete;
  StderrInFile& operator=(const StderrInFile&) = delete;
  ~StderrInFile() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

}  // namespace

TEST_CASE("a call without stderr is not heard, and other threads are heard meanwhile") {
  const TempFolder folder;
  const std::string path = folder / "stderr";
  {
    const StderrInFile redirected(path);
    std::atomic<int> turn = 0;
    std::thread other([&] {
      while (turn != 1) std::this_thread::yield();
      say("other\n");
      turn = 2;
    });
    without_stderr([&] {
      say("libslurm\n");
      turn = 1;
      while (turn != 2) std::this_thread::yield();
    });
    other.join();
    say("after\n");
  }
  CHECK(text_of(path) == "other\nafter\n");
}

TEST_CASE("descriptors that a call without stderr opens are its own") {
  int opened = -1;
  without_stderr([&] { opened = ::open("/dev/null", O_RDONLY | O_CLOEXEC); });
  REQUIRE(opened >= 0);
  CHECK(::fcntl(opened, F_GETFD) == -1);
}
