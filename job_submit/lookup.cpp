#include "job_submit/lookup.h"

#include <cdb.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sphase {
namespace {

/// Reads exactly `size` bytes from where cdb_seek left off.
bool read_value(int file, char* out, unsigned size) {
  return cdb_bread(file, out, static_cast<int>(size)) == 0;
}

/// True if the part of the index that `key` is looked for in ends where the next one begins, as
/// cdb_make writes it. Otherwise cdb_seek might search megabytes. Format:
/// https://cr.yp.to/cdb/cdb.txt
bool index_is_sound(int file, std::string_view key) {
  constexpr unsigned kParts = 256, kEntry = 8;  // position and number of slots, 4 bytes each
  unsigned char bytes[2 * kEntry];
  const unsigned part = cdb_hash(key.data(), static_cast<unsigned>(key.size())) % kParts;
  const bool last = part == kParts - 1;
  const ssize_t wanted = last ? kEntry : 2 * kEntry;
  if (::pread(file, bytes, static_cast<std::size_t>(wanted), part * kEntry) != wanted) return false;
  const std::uint64_t end = cdb_unpack(bytes) + std::uint64_t{kEntry} * cdb_unpack(bytes + 4);
  if (!last) return end == cdb_unpack(bytes + kEntry);
  struct stat facts {};
  return ::fstat(file, &facts) == 0 && end == static_cast<std::uint64_t>(facts.st_size);
}

AdviceState look_in(int file, std::string_view key, std::int64_t now_s, Advice& out,
                    int& errno_out) {
  char value[kAdviceBytesMost];
  unsigned size = 0;
  if (!index_is_sound(file, key)) return AdviceState::kDamaged;
  errno = 0;
  const int found = cdb_seek(file, key.data(), static_cast<unsigned>(key.size()), &size);
  if (found == 0) return AdviceState::kMissing;
  if (found < 0) {
    errno_out = errno != 0 ? errno : EPROTO;
    return AdviceState::kDamaged;
  }
  if (size > sizeof(value) || !read_value(file, value, size)) return AdviceState::kDamaged;
  return read_advice(key, {value, size}, now_s, out);
}

}  // namespace

AdviceState look_up(const char* path, std::string_view key, std::int64_t now_s, Advice& out,
                    int& errno_out) {
  errno_out = 0;
  std::memset(&out, 0, sizeof(out));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) {
    errno_out = errno;
    return AdviceState::kMissing;
  }
  const AdviceState state = look_in(file, key, now_s, out, errno_out);
  ::close(file);
  if (state != AdviceState::kFound && state != AdviceState::kExpired) {
    std::memset(&out, 0, sizeof(out));
  }
  return state;
}

}  // namespace sphase
