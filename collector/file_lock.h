// One process at a time: an advisory lock on a file beside the thing that is guarded.
#pragma once

#include <string>
#include <utility>

#include "common/result.h"

namespace sphase {

/// Held until it is destroyed, and by nobody after its process has ended, however it ended. The
/// file stays: removing it would let two processes hold two locks of one name. It holds the pid of
/// its last owner, for people.
class FileLock {
 public:
  /// Makes the file (mode 0600) where absent. Waits at most `wait_ms` for another owner.
  /// Errors: the file cannot be opened, or another process holds it (which one is told).
  static Result<FileLock> take(const std::string& path, int wait_ms = 0);

  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

}  // namespace sphase
