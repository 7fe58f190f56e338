// Puts the page together: frame, style, scripts, data, and the policy that allows just these.
#include <array>

#include "collector/page/page.h"
#include "collector/page/policy.h"

namespace sphase {

extern const std::string_view kPageFrame, kPageStyle, kPagePlots, kPageScript, kPageLive;
extern const std::string_view kPageStyleSha256, kPagePlotsSha256, kPageScriptSha256,
    kPageLiveSha256;

std::string job_page_policy(PageKind kind) {
  if (kind == PageKind::kFile) {
    return page_policy({kPagePlotsSha256, kPageScriptSha256}, kPageStyleSha256, false);
  }
  return page_policy({kPagePlotsSha256, kPageScriptSha256, kPageLiveSha256}, kPageStyleSha256,
                     true);
}

std::string page_html(std::string_view data, PageKind kind) {
  const std::string rules = job_page_policy(kind);
  const std::string live =
      kind == PageKind::kFile
          ? ""
          : std::string("<script type=\"module\">").append(kPageLive).append("</script>\n");
  const std::array<std::pair<std::string_view, std::string_view>, 6> parts = {{
      {"@POLICY@", rules},
      {"@STYLE@", kPageStyle},
      {"@DATA@", data},
      {"@PLOTS@", kPagePlots},
      {"@SCRIPT@", kPageScript},
      {"@LIVE@", live},
  }};
  std::string html;
  html.reserve(kPageFrame.size() + kPageStyle.size() + kPagePlots.size() + kPageScript.size() +
               live.size() + data.size() + rules.size());
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
