#include "collector/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string_view>
#include <thread>

namespace sphase {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

/// " (process 123)", or nothing if the file does not say.
std::string owner_of(int file) {
  std::array<char, 16> bytes{};
  const auto size = ::pread(file, bytes.data(), bytes.size(), 0);
  if (size <= 0) return "";
  std::string_view pid(bytes.data(), static_cast<std::size_t>(size));
  pid = pid.substr(0, pid.find_first_not_of("0123456789"));
  return pid.empty() ? "" : " (process " + std::string(pid) + ")";
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path, int wait_ms) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return errno_error("cannot open " + path);
  FileLock lock(file);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return errno_error("cannot lock " + path);
    if (std::chrono::steady_clock::now() >= until) {
      return Error{path + " is locked by another process" + owner_of(file)};
    }
    std::this_thread::sleep_for(kPoll);
  }
  const std::string pid = std::to_string(::getpid()) + '\n';
  // For people alone: the lock holds whether or not this can be written.
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, pid.data(), pid.size(), 0);
  return lock;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace sphase
