// What a browser sends and what `sphase web` prints: targets, names of hosts, places to listen at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace sphase {

inline constexpr std::uint16_t kHttpPort = 6826;
/// What the credential of `sphase web` is around: one that was made for anything else is refused.
inline constexpr std::string_view kLoginPayload = "sphase web";

/// "a+b/c=" as "a%2Bb%2Fc%3D". RFC 3986, 2.3: letters, digits and -._~ stay.
std::string percent_encode(std::string_view text);

/// The reverse. nullopt: a % without two digits behind it, or a zero byte.
std::optional<std::string> percent_decode(std::string_view text);

/// "/job/12%2B1?q=a+b" taken apart and decoded.
struct Target {
  std::vector<std::string> path;             // {"job", "12+1"}; empty: "/"
  std::map<std::string, std::string> query;  // the first of each name
};

/// nullopt: not a path from the root, an empty part in it, or wrongly encoded.
std::optional<Target> parse_target(std::string_view text);

struct ListenPlace {
  std::string address = "127.0.0.1";
  std::uint16_t port = kHttpPort;
};

/// "PORT", "ADDRESS:PORT", "[IPV6]:PORT". A port alone is at the loopback address; 0 is any free
/// one. Errors: one line that says what would be right.
Result<ListenPlace> parse_listen(const std::string& text);

bool is_ip_address(const std::string& text);

/// The host of a Host field, in small letters, without port and brackets.
std::string host_of(std::string_view field);

/// http://HOST:PORT/login?token=…; `url` is what stands before /login.
std::string login_link(std::string_view url, std::string_view credential);

/// http://HOST:PORT, the host in brackets where it is an IPv6 address.
std::string url_of(const std::string& host, std::uint16_t port);

}  // namespace sphase
