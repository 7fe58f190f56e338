#include "cli/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace sphase {
namespace {

/// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Opens, writes and closes: a full disk may be told of as late as that. 0, or errno.
int write_to(const std::string& path, int flags, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (fd < 0) return errno;
  const int failed = write_all(fd, text);
  const int unclosed = close(fd) == 0 ? 0 : errno;
  return failed != 0 ? failed : unclosed;
}

}  // namespace

Status write_file(const std::string& path, std::string_view text) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    const int failed = write_to(path, 0, text);
    if (failed != 0) return errno_error("cannot write " + path, failed);
    return Done{};
  }
  std::error_code unresolved;
  const std::string target = exists ? std::filesystem::canonical(path, unresolved).string() : path;
  if (unresolved) return Error{"cannot write " + path + ": " + unresolved.message()};
  const std::string aside = target + ".new-" + std::to_string(getpid());
  int failed = write_to(aside, O_CREAT | O_EXCL, text);
  const bool is_ours = failed != EEXIST;
  if (failed == 0 && std::rename(aside.c_str(), target.c_str()) != 0) failed = errno;
  if (failed == 0) return Done{};
  if (is_ours) unlink(aside.c_str());
  return errno_error("cannot write " + path, failed);
}

}  // namespace sphase
