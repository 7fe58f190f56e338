#include "collector/http/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace sphase {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failed != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return port;
}

/// As forms send it: a blank is a plus sign.
std::optional<std::string> decode_query(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  return percent_decode(blanks);
}

bool parse_path(std::string_view text, std::vector<std::string>& parts) {
  if (!text.starts_with('/')) return false;
  text.remove_prefix(1);
  while (!text.empty()) {
    const auto end = std::min(text.find('/'), text.size());
    auto part = percent_decode(text.substr(0, end));
    if (!part || part->empty()) return false;
    parts.push_back(std::move(*part));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

bool parse_query(std::string_view text, std::map<std::string, std::string>& values) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    auto name = decode_query(pair.substr(0, equals));
    auto value = decode_query(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value) return false;
    values.emplace(std::move(*name), std::move(*value));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15u];
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    unsigned byte = 0;
    const char* const begin = text.data() + at + 1;
    const auto [stop, failed] = std::from_chars(begin, begin + 2, byte, 16);
    if (failed != std::errc() || stop != begin + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    at += 2;
  }
  if (decoded.find('\0') != std::string::npos) return std::nullopt;
  return decoded;
}

std::optional<Target> parse_target(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const auto mark = std::min(text.find('?'), text.size());
  Target target;
  if (!parse_path(text.substr(0, mark), target.path)) return std::nullopt;
  if (!parse_query(text.substr(std::min(mark + 1, text.size())), target.query)) return std::nullopt;
  return target;
}

Result<ListenPlace> parse_listen(const std::string& text) {
  const Error wrong{"--http " + text +
                    ": right are PORT, ADDRESS:PORT and [IPV6-ADDRESS]:PORT, such as "
                    "127.0.0.1:6826"};
  ListenPlace place;
  const auto colon = text.rfind(':');
  const auto port = port_of(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!port) return wrong;
  place.port = *port;
  if (colon == std::string::npos) return place;
  place.address = text.substr(0, colon);
  const bool bracketed = place.address.starts_with('[') && place.address.ends_with(']');
  if (bracketed) place.address = place.address.substr(1, place.address.size() - 2);
  const bool is_v6 = place.address.find(':') != std::string::npos;
  if (!is_ip_address(place.address) || is_v6 != bracketed) return wrong;
  return place;
}

bool is_ip_address(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, text.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
}

std::string host_of(std::string_view field) {
  std::string_view host = field.substr(0, field.rfind(':'));
  if (field.starts_with('[')) host = field.substr(1, std::min(field.find(']'), field.size()) - 1);
  std::string small(host);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return small;
}

std::string login_link(std::string_view url, std::string_view credential) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url) + "/login?token=" + percent_encode(credential);
}

std::string url_of(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? '[' + host + ']' : host) + ':' + std::to_string(port);
}

}  // namespace sphase
