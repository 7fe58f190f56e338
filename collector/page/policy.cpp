#include "collector/page/policy.h"

#include <cstdint>

namespace sphase {
namespace {

std::uint32_t digit(char hex) {
  return static_cast<std::uint32_t>(hex <= '9' ? hex - '0' : hex - 'a' + 10);
}

/// "'sha256-…'" as a policy names it: base64 (RFC 4648) of the bytes that `hex` says.
std::string policy_hash(std::string_view hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string base64;
  std::uint32_t bits = 0, count = 0;
  for (const char c : hex) {
    bits = bits << 4 | digit(c);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    base64 += kDigits[bits >> count & 63u];
  }
  if (count > 0) base64 += kDigits[bits << (6 - count) & 63u];
  while (base64.size() % 4 != 0) base64 += '=';
  return "'sha256-" + base64 + "'";
}

}  // namespace

std::string page_policy(const std::vector<std::string_view>& scripts, std::string_view style,
                        bool may_ask) {
  std::string policy = "default-src 'none'; base-uri 'none'; form-action 'none'; script-src";
  for (const auto script : scripts) policy += ' ' + policy_hash(script);
  policy += "; style-src " + policy_hash(style);
  if (may_ask) policy += "; connect-src 'self'";
  return policy;
}

}  // namespace sphase
