// Source: collector/page/page_html.cpp.
#include <doctest/doctest.h>

#include "collector/page/page.h"

using namespace sphase;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the page is one file that loads nothing") {
  const std::string html = page_html("{\"starts\": []}");
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.find("<script type=\"application/json\" id=\"data\">{\"starts\": []}</script>") !=
        std::string::npos);
  CHECK(html.find("<script src") == std::string::npos);
  CHECK(html.find("<img") == std::string::npos);
  CHECK(html.find("<link") == std::string::npos);
  CHECK(html.find("@import") == std::string::npos);
  CHECK(html.find("sourceMappingURL") == std::string::npos);
}

TEST_CASE("its policy allows the embedded scripts and style by their hash, and nothing else") {
  const std::string html = page_html("{}");
  const auto begin = html.find("default-src 'none'");
  REQUIRE(begin != std::string::npos);
  const std::string policy = html.substr(begin, html.find('"', begin) - begin);
  CHECK(count(policy, "'sha256-") == 3);
  CHECK(count(policy, "=' ") + count(policy, "=';") + (policy.ends_with("='") ? 1 : 0) == 3);
  CHECK(policy.find("unsafe") == std::string::npos);
}

TEST_CASE("the licence of the plotting library stands in the page") {
  const std::string html = page_html("{}");
  CHECK(html.find("Dan Vanderkam") != std::string::npos);
  CHECK(html.find("Permission is hereby granted, free of charge") != std::string::npos);
}

TEST_CASE("marks of the frame that stand in the data stay as they are") {
  const std::string html = page_html("\"@SCRIPT@ @POLICY@\"");
  CHECK(html.find("\"@SCRIPT@ @POLICY@\"") != std::string::npos);
}

TEST_CASE("the page from a server may ask it for newer data, the file asks nobody") {
  const std::string live = page_html("{}", PageKind::kLive), file = page_html("{}");
  CHECK(live.find("connect-src 'self'") != std::string::npos);
  CHECK(live.find("fetch(") != std::string::npos);
  CHECK(count(job_page_policy(PageKind::kLive), "'sha256-") == 4);
  CHECK(file.find("connect-src") == std::string::npos);
  CHECK(file.find("fetch(") == std::string::npos);
  CHECK(file.find("@LIVE@") == std::string::npos);
}
