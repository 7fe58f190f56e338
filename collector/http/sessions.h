// Who is logged in. Lives in memory alone: after a restart everybody logs in again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/result.h"

namespace sphase {

inline constexpr std::int64_t kSessionS = 8 * 3600;

/// The value of a cookie in a Cookie field: RFC 6265, 4.2. The first one of that name counts.
std::optional<std::string_view> cookie_value(std::string_view field, std::string_view name);

/// Sessions of users, bounded: where there are too many, the oldest one ends. Not thread-safe.
/// Times are those of the monotonic clock, in ns.
class Sessions {
 public:
  explicit Sessions(std::size_t most = 10'000) : most_(most) {}

  /// A new session's id: 64 hexadecimal digits, 32 bytes of the kernel's randomness.
  Result<std::string> open(std::uint32_t uid, std::int64_t now_ns);
  /// The user of a session that has not ended.
  std::optional<std::uint32_t> uid_of(std::string_view id, std::int64_t now_ns);
  std::size_t count(std::int64_t now_ns);

 private:
  struct Session {
    std::uint32_t uid;
    std::int64_t end_ns;
  };
  void forget(std::int64_t now_ns);

  std::size_t most_;
  std::unordered_map<std::string, Session> sessions_;
  std::deque<std::string> by_age_;  // all of them live equally long: the oldest ends first
};

}  // namespace sphase
