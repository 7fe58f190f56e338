// Source: cli/learned.cpp.
#include "cli/learned.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::vector<ProfileLine> profiles(const std::vector<std::string>& keys) {
  std::vector<ProfileLine> lines;
  for (const auto& key : keys) {
    ProfileLine line;
    line.profile = key;
    lines.push_back(line);
  }
  return lines;
}

const std::vector<ProfileLine> kKnown =
    profiles({"1001/solver", "1002/solver", "1002/other", "1001/~3f2a90cc12ab34ef",
              "1001/~3f2b000000000000", "1002/~3f2a000000000000", "1001/12/x"});

std::string chosen(const std::string& text, uid_t uid = 1001) {
  const auto key = choose_profile(kKnown, text, uid);
  return key ? *key : "error: " + key.error();
}

}  // namespace

TEST_CASE("a name is the calling user's, a key is anybody's") {
  CHECK(chosen("solver") == "1001/solver");
  CHECK(chosen("solver", 1002) == "1002/solver");
  CHECK(chosen("1002/solver") == "1002/solver");
  CHECK(chosen("12/x") == "1001/12/x");  // a name may look like a key
}

TEST_CASE("a hash may be cut short where it stays the only one") {
  CHECK(chosen("~3f2a") == "1001/~3f2a90cc12ab34ef");
  CHECK(chosen("~3f2a…") == "1001/~3f2a90cc12ab34ef");
  CHECK(chosen("1002/~3f") == "1002/~3f2a000000000000");
  CHECK(chosen("~3f2") ==
        "error: ~3f2 may be each of 1001/~3f2a90cc12ab34ef, 1001/~3f2b000000000000");
}

TEST_CASE("what is not known says what is") {
  CHECK(chosen("other") == "error: you have no profile other; others have 1002/other");
  CHECK(chosen("solver", 7) ==
        "error: you have no profile solver; others have 1001/solver, 1002/solver");
  CHECK(chosen("none").find("sphase profile list") != std::string::npos);
  CHECK(chosen("solv").find("error: ") == 0);  // names are not cut
  CHECK(chosen("").find("error: ") == 0);
  CHECK(chosen("/").find("error: ") == 0);
  CHECK(chosen("~").find("error: ~ may be each of") == 0);
}

TEST_CASE("of many that may be meant only some are listed") {
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("1001/~" + std::to_string(i));
  const auto key = choose_profile(profiles(keys), "~", 1001);
  REQUIRE_FALSE(key);
  CHECK(key.error().find("and 12 more") != std::string::npos);
}

TEST_CASE("the database: as given, else $SPHASE_DB, else as sphase.conf says") {
  const auto path = [](const char* given, const char* own) {
    return in_child([&] {
      own != nullptr ? setenv("SPHASE_DB", own, 1) : unsetenv("SPHASE_DB");
      SiteConfig config;
      std::strcpy(config.cluster_db, "/conf.db");
      const std::string found = cluster_path(given, config);
      return found == "/given.db" ? 1 : found == "/own.db" ? 2 : found == "/conf.db" ? 3 : 4;
    });
  };
  CHECK(path("/given.db", "/own.db") == 1);
  CHECK(path("", "/own.db") == 2);
  CHECK(path("", "") == 3);
  CHECK(path("", nullptr) == 3);
}

TEST_CASE("no sphase.conf is the defaults, a wrong one is an error") {
  const TempFolder folder;
  const auto wrong = folder.write("wrong.conf", "Policy=best\n");
  const auto code = [](const std::string& conf) {
    return in_child([&] {
      setenv("SPHASE_CONF", conf.c_str(), 1);
      const auto config = load_site_config();
      return config ? static_cast<int>(config->runs_least)
             : config.error().find("line 1") != std::string::npos ? 100
                                                                  : 101;
    });
  };
  CHECK(code(folder / "none.conf") == 3);
  CHECK(code(folder.write("good.conf", "MinRuns=7\n")) == 7);
  CHECK(code(wrong) == 100);
}

TEST_CASE("a profile without runs is not known") {
  ClusterFixture cluster;
  const auto learned = load_learned(cluster.db(), "1/x", SiteConfig(), 0);
  REQUIRE_FALSE(learned);
  CHECK(learned.error() == "nothing is known of profile 1/x");
}
