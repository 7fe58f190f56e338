#include "collector/http/answer.h"

#include <nlohmann/json.hpp>

#include "collector/page/page.h"
#include "collector/page/policy.h"

namespace sphase {

extern const std::string_view kJobsFrame, kJobsStyle, kJobsScript;
extern const std::string_view kJobsStyleSha256, kJobsScriptSha256;

namespace {

const std::string kHtml = "text/html; charset=utf-8";
const std::string kNothingAllowed = "default-src 'none'; base-uri 'none'; form-action 'none'";

std::string filled(std::string_view frame, std::string_view mark, std::string_view text) {
  const auto at = frame.find(mark);
  return std::string(frame.substr(0, at)).append(text).append(frame.substr(at + mark.size()));
}

}  // namespace

HttpAnswer json_answer(std::string body) {
  return {200, "application/json", std::move(body), kNothingAllowed, {}};
}

HttpAnswer page_answer(unsigned status, std::string_view title, std::string_view text) {
  std::string body =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>";
  body.append(title).append("</title></head>\n<body><h1>").append(title).append("</h1><p>");
  body.append(text).append("</p></body></html>\n");
  return {status, kHtml, std::move(body), kNothingAllowed, {}};
}

HttpAnswer error_answer(unsigned status, std::string_view text) {
  HttpAnswer answer = json_answer(nlohmann::json{{"error", text}}.dump(
                                      -1, ' ', true, nlohmann::json::error_handler_t::replace) +
                                  '\n');
  answer.status = status;
  return answer;
}

HttpAnswer jobs_page_answer() {
  const std::string policy = page_policy({kJobsScriptSha256}, kJobsStyleSha256, true);
  // The script last: what is put in is never looked through for marks.
  const std::string styled = filled(kJobsFrame, "@STYLE@", kJobsStyle);
  return {200, kHtml, filled(styled, "@SCRIPT@", kJobsScript), policy, {}};
}

HttpAnswer job_page_answer(std::string_view data) {
  return {200, kHtml, page_html(data, PageKind::kLive), job_page_policy(PageKind::kLive), {}};
}

}  // namespace sphase
