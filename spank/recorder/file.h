// Small files that are read again and again: opened once, read with pread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sphase {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Opens read-only; never with a flag that could change the file: Slurm reads these too.
/// The one exception is PeakSource, whose writes no other reader sees.
inline Fd open_read(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

/// Reads from the start of a kept descriptor into `buffer` (at most its size).
/// Empty: the file is gone (its cgroup or process ended), or not readable. Cost: 0.4 µs and up.
template <std::size_t N>
std::string_view read_again(const Fd& fd, char (&buffer)[N]) {
  if (!fd) return {};
  const ssize_t size = ::pread(fd.get(), buffer, N, 0);
  return size > 0 ? std::string_view(buffer, static_cast<std::size_t>(size)) : std::string_view();
}

/// Whole file, at most 1 MiB. nullopt: not there.
std::optional<std::string> read_file(const std::string& path);

/// First decimal number in `text`. nullopt: none, or it does not fit.
std::optional<std::int64_t> parse_number(std::string_view text);

/// Number after `key` at the start of a line: "anon 4096". nullopt: no such line.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key);

/// Several such numbers in one pass: each found one is stored. Cost: 0.5 µs for a memory.stat.
struct Wanted {
  std::string_view key;
  std::optional<std::int64_t>* number;
};
void numbers_after(std::string_view text, std::initializer_list<Wanted> wanted);

}  // namespace sphase
