#include "collector/http/sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <array>

namespace sphase {
namespace {

constexpr std::size_t kIdBytes = 32;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<std::string> random_id() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, kIdBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_error("no random numbers");
  }
  std::string id;
  for (const unsigned char byte : bytes) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15u];
  }
  return id;
}

}  // namespace

std::optional<std::string_view> cookie_value(std::string_view field, std::string_view name) {
  while (!field.empty()) {
    const auto end = std::min(field.find(';'), field.size());
    const std::string_view pair = trimmed(field.substr(0, end));
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return pair.substr(equals + 1);
    }
    field.remove_prefix(std::min(end + 1, field.size()));
  }
  return std::nullopt;
}

Result<std::string> Sessions::open(std::uint32_t uid, std::int64_t now_ns) {
  auto id = random_id();
  if (!id) return id;
  forget(now_ns);
  while (by_age_.size() >= most_) {
    sessions_.erase(by_age_.front());
    by_age_.pop_front();
  }
  sessions_[*id] = {uid, now_ns + kSessionS * 1'000'000'000};
  by_age_.push_back(*id);
  return id;
}

std::optional<std::uint32_t> Sessions::uid_of(std::string_view id, std::int64_t now_ns) {
  forget(now_ns);
  const auto found = sessions_.find(std::string(id));
  if (found == sessions_.end()) return std::nullopt;
  return found->second.uid;
}

std::size_t Sessions::count(std::int64_t now_ns) {
  forget(now_ns);
  return sessions_.size();
}

void Sessions::forget(std::int64_t now_ns) {
  while (!by_age_.empty()) {
    const auto oldest = sessions_.find(by_age_.front());
    if (oldest != sessions_.end() && oldest->second.end_ns > now_ns) return;
    if (oldest != sessions_.end()) sessions_.erase(oldest);
    by_age_.pop_front();
  }
}

}  // namespace sphase
