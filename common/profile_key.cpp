#include "common/profile_key.h"

#include <cstdio>
#include <cstring>

namespace sphase {
namespace {

constexpr std::uint64_t kPrime = 0x100000001b3U;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Hash {
 public:
  explicit Hash(std::uint64_t start) : value_(start) {}
  void put(char c) { value_ = (value_ ^ static_cast<unsigned char>(c)) * kPrime; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

void put_name(std::string_view name, Hash& hash) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) {
      hash.put(name[i]);
    } else if (i == 0 || !is_digit(name[i - 1])) {
      hash.put('#');
    }
  }
  hash.put('\0');
}

/// One line without its newline: trimmed, runs of blanks as one.
void put_line(const char* at, const char* end, Hash& hash) {
  while (at != end && is_blank(*at)) ++at;
  while (at != end && is_blank(end[-1])) --end;
  if (at == end || *at == '#') return;
  for (; at != end; ++at) {
    if (!is_blank(*at)) {
      hash.put(*at);
    } else if (!is_blank(at[-1])) {
      hash.put(' ');
    }
  }
  hash.put('\n');
}

void put_script(std::string_view script, Hash& hash) {
  const char* at = script.data();
  const char* const end =
      at + (script.size() < kScriptBytesHashed ? script.size() : kScriptBytesHashed);
  while (at != end) {
    const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* stop = newline != nullptr ? static_cast<const char*>(newline) : end;
    put_line(at, stop, hash);
    at = stop == end ? end : stop + 1;
  }
}

}  // namespace

std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash) {
  Hash running(hash);
  for (const char c : bytes) running.put(c);
  return running.value();
}

std::uint64_t script_hash(std::string_view job_name, std::string_view script) {
  Hash hash(fnv1a({}));
  put_name(job_name, hash);
  put_script(script, hash);
  return hash.value();
}

ProfileKey profile_key(std::uint32_t uid, std::string_view profile, std::string_view job_name,
                       std::string_view script) {
  ProfileKey key;
  int size = 0;
  if (!profile.empty()) {
    const int length = profile.size() < 127 ? static_cast<int>(profile.size()) : 127;
    size = std::snprintf(key.text, sizeof(key.text), "%u/%.*s", uid, length, profile.data());
  } else {
    const auto hash = static_cast<unsigned long long>(script_hash(job_name, script));
    size = std::snprintf(key.text, sizeof(key.text), "%u/~%016llx", uid, hash);
  }
  key.size = static_cast<std::size_t>(size);
  return key;
}

}  // namespace sphase
