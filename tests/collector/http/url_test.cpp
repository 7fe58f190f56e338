#include "collector/http/url.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("a target is taken apart at slashes and decoded part by part") {
  const auto target = parse_target("/api/job/12%2B1/page?q=two+words&limit=5&q=later#x");
  REQUIRE(target);
  CHECK(target->path == std::vector<std::string>{"api", "job", "12+1", "page"});
  CHECK(target->query.at("q") == "two words");
  CHECK(target->query.at("limit") == "5");
  CHECK(parse_target("/")->path.empty());
  CHECK(parse_target("/job/12+1")->path.back() == "12+1");
  CHECK(parse_target("/job/a%2Fb")->path.back() == "a/b");
}

TEST_CASE("what is no path from the root, or wrongly encoded, is no target") {
  for (const char* wrong : {"", "*", "http://elsewhere/", "//x", "/a//b", "/%", "/%2", "/%zz",
                            "/%00", "/?q=%", "/?%zz=1", "/%+1"}) {
    CAPTURE(wrong);
    CHECK(!parse_target(wrong));
  }
  CHECK(parse_target("/?"));
  CHECK(parse_target("/?&&=&a"));
}

TEST_CASE("every byte comes through encoding and decoding") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(percent_decode(percent_encode(all)) == all);
  CHECK(percent_encode("MUNGE:a+b/c==:") == "MUNGE%3Aa%2Bb%2Fc%3D%3D%3A");
}

TEST_CASE("a port alone is at the loopback address") {
  const auto place = parse_listen("6826");
  REQUIRE(place);
  CHECK(place->address == "127.0.0.1");
  CHECK(place->port == 6826);
  CHECK(parse_listen("0.0.0.0:80")->address == "0.0.0.0");
  CHECK(parse_listen("[::1]:0")->address == "::1");
  CHECK(parse_listen("[::1]:0")->port == 0);
}

TEST_CASE("a wrong place to listen at is one line that says what is right") {
  for (const char* wrong : {"", ":", "x", "70000", "-1", "127.0.0.1", "127.0.0.1:", "host:1",
                            "::1:1", "[::1]", "[127.0.0.1]:1", ":6826", "127.0.0.1:6826x"}) {
    CAPTURE(wrong);
    const auto place = parse_listen(wrong);
    REQUIRE(!place);
    CHECK(place.error().find("127.0.0.1:6826") != std::string::npos);
    CHECK(place.error().find('\n') == std::string::npos);
  }
}

TEST_CASE("the host of a Host field stands without port and brackets, in small letters") {
  CHECK(host_of("Login.Example.ORG:6826") == "login.example.org");
  CHECK(host_of("localhost") == "localhost");
  CHECK(host_of("[::1]:6826") == "::1");
  CHECK(host_of("[::1]") == "::1");
  CHECK(host_of("") == "");
  CHECK(host_of("[") == "");
}

TEST_CASE("a link for logging in can be opened as it is") {
  CHECK(login_link(url_of("c1", 6826), "a+b") == "http://c1:6826/login?token=a%2Bb");
  CHECK(login_link("https://c1/", "x") == "https://c1/login?token=x");
  CHECK(url_of("fe80::1", 1) == "http://[fe80::1]:1");
}
