#include "collector/http/website.h"

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A site with a job of user 1000 and one of 1001, and a munged that knows "for-UID" once each.
struct SiteFixture : ClusterFixture {
  std::vector<std::string> used, logged;
  Website site;

  SiteFixture()
      : site({path(),
              {64},
              {"collector"},
              [this](const std::string& token) { return caller_of(token); },
              [this](const std::string& line) { logged.push_back(line); }}) {
    add_job(db(), {.job_id = 7});
    add_run(db(), {.job_id = 8, .uid = 1001});
  }

  Result<Caller> caller_of(const std::string& token) {
    if (std::find(used.begin(), used.end(), token) != used.end()) return Error{"replayed"};
    used.push_back(token);
    if (token.starts_with("for-")) {
      return Caller{static_cast<std::uint32_t>(std::stoul(token.substr(4))), "sphase web"};
    }
    if (token == "ship-0") return Caller{0, "a nonce of the wire"};
    return Error{"garbage"};
  }

  HttpAnswer get(const std::string& target, const std::string& cookie = "") {
    return site.answer({"GET", target, "127.0.0.1:6826", cookie, false});
  }
  static std::string field(const HttpAnswer& answer, const std::string& name) {
    for (const auto& [key, value] : answer.fields) {
      if (key == name) return value;
    }
    return "";
  }
  std::string log_in(std::uint32_t uid) {
    const auto answer = get("/login?token=for-" + std::to_string(uid));
    CHECK(answer.status == 303);
    CHECK(field(answer, "Location") == "/");
    const std::string cookie = field(answer, "Set-Cookie");
    CHECK(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=28800"));
    return cookie.substr(0, cookie.find(';'));
  }
};

}  // namespace

TEST_CASE_FIXTURE(SiteFixture, "without a session there is nothing but the word how to get one") {
  for (const char* target : {"/", "/job/7", "/api/jobs", "/api/job/7", "/api/job/7/page",
                             "/metrics", "/no/such/page", "/login"}) {
    CAPTURE(target);
    const auto answer = get(target, "sphase=" + std::string(64, '0'));
    CHECK(answer.status == 401);
    CHECK(answer.body.find("sphase web") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(SiteFixture, "a user sees one's own job in every form, and no other one") {
  const std::string cookie = log_in(1000);
  CHECK(get("/", cookie).status == 200);
  for (const std::string form : {"/job/X", "/api/job/X", "/api/job/X/page"}) {
    CAPTURE(form);
    const auto of = [&](const std::string& job) {
      return get(std::string(form).replace(form.find('X'), 1, job), cookie);
    };
    CHECK(of("7").status == 200);
    CHECK(of("8").status == 404);
    CHECK(of("8").body == of("9").body);
    CHECK(of("8").body == of("nonsense").body);
  }
  CHECK(get("/api/jobs", cookie).body.find("\"job_id\":8") == std::string::npos);
  CHECK(get("/metrics", cookie).status == 401);
}

TEST_CASE_FIXTURE(SiteFixture, "an operator sees the jobs of all, and the counts") {
  const std::string cookie = log_in(64);
  CHECK(get("/api/job/7", cookie).status == 200);
  CHECK(get("/api/job/8", cookie).status == 200);
  CHECK(get("/api/jobs?limit=1", cookie).body.find("\"all_users\":true") != std::string::npos);
  CHECK(get("/metrics", cookie).body.find("sphase_web_sessions 1\n") != std::string::npos);
}

TEST_CASE_FIXTURE(SiteFixture,
                  "a credential that is no good, or was made for something else, logs nobody in") {
  log_in(1000);
  for (const char* token : {"for-1000", "garbage", "", "ship-0"}) {
    CAPTURE(token);
    const auto answer = get(std::string("/login?token=") + token);
    CHECK(answer.status == 403);
    CHECK(field(answer, "Set-Cookie").empty());
  }
}

TEST_CASE_FIXTURE(SiteFixture, "counts are told to this host without a session") {
  const auto answer = site.answer({"GET", "/metrics", "localhost", "", true});
  CHECK(answer.status == 200);
  CHECK(answer.type == "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

TEST_CASE_FIXTURE(SiteFixture, "other methods, other hosts and what cannot be read are refused") {
  const std::string cookie = log_in(1000);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", ""}) {
    CHECK(site.answer({method, "/", "127.0.0.1", cookie, false}).status == 405);
  }
  for (const char* host :
       {"", "evil.example", "collector.evil.example", "127.0.0.1.evil.example"}) {
    CHECK(site.answer({"GET", "/", host, cookie, false}).status == 421);
  }
  for (const char* host :
       {"collector", "COLLECTOR:6826", "localhost:1", "10.0.0.1", "[::1]:6826"}) {
    CHECK(site.answer({"GET", "/", host, cookie, false}).status == 200);
  }
  CHECK(get("/%zz", cookie).status == 400);
  CHECK(get("/../etc/passwd", cookie).status == 404);
  CHECK(get("/api", cookie).status == 404);
  CHECK(get("/api/job", cookie).status == 404);
  CHECK(get("/api/job/7/other", cookie).status == 404);
}

TEST_CASE_FIXTURE(SiteFixture, "a database that cannot be read is said, and opened again later") {
  const std::string cookie = log_in(1000);
  std::filesystem::rename(path(), path() + ".away");
  CHECK(get("/api/job/7", cookie).status == 503);
  CHECK(get("/api/job/7", cookie).status == 503);
  CHECK(logged.size() == 1);
  std::filesystem::rename(path() + ".away", path());
  CHECK(get("/api/job/7", cookie).status == 200);
}

TEST_CASE_FIXTURE(SiteFixture, "the live page may ask its server, by its policy, and nobody else") {
  const auto page = get("/job/7", log_in(1000));
  CHECK(page.policy.find("connect-src 'self'") != std::string::npos);
  CHECK(page.policy.find("unsafe") == std::string::npos);
  CHECK(page.body.find("@LIVE@") == std::string::npos);
  CHECK(page.body.find("/api${location.pathname}/page") != std::string::npos);
}
