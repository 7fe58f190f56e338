// Puts the page together: frame, style, scripts, data, and the policy that allows just these.
#include <array>
#include <cstdint>

#include "collector/page/page.h"

namespace sphase {

extern const std::string_view kPageFrame, kPageStyle, kPagePlots, kPageScript;
extern const std::string_view kPageStyleSha256, kPagePlotsSha256, kPageScriptSha256;

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

/// Nothing is loaded from anywhere, and nothing runs but what was embedded here.
std::string policy() {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " +
         policy_hash(kPagePlotsSha256) + " " + policy_hash(kPageScriptSha256) + "; style-src " +
         policy_hash(kPageStyleSha256);
}

}  // namespace

std::string page_html(std::string_view data) {
  const std::string rules = policy();
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {{
      {"@POLICY@", rules},
      {"@STYLE@", kPageStyle},
      {"@DATA@", data},
      {"@PLOTS@", kPagePlots},
      {"@SCRIPT@", kPageScript},
  }};
  std::string html;
  html.reserve(kPageFrame.size() + kPageStyle.size() + kPagePlots.size() + kPageScript.size() +
               data.size() + rules.size());
  // The marks are looked for in the frame alone, never in what was put in.
  std::string_view rest = kPageFrame;
  for (const auto& [mark, text] : parts) {
    const auto at = rest.find(mark);
    if (at == std::string_view::npos) continue;
    html.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return html.append(rest);
}

}  // namespace sphase
