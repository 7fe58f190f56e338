#include "collector/site.h"

#include <doctest/doctest.h>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("without a sphase.conf at its usual place the defaults hold") {
  const TempFolder folder;
  setenv("SPHASE_CONF", (folder / "sphase.conf").c_str(), 1);
  const auto site = load_site("");
  REQUIRE(site);
  CHECK(site->path == folder / "sphase.conf");
  CHECK(site->config.runs_least == SiteConfig().runs_least);
  folder.write("sphase.conf", "AdviceTable=/x/y.cdb\n");
  CHECK(std::string(load_site("")->config.advice_table) == "/x/y.cdb");
  unsetenv("SPHASE_CONF");
}

TEST_CASE("a sphase.conf that was named has to be there and be right") {
  const TempFolder folder;
  const auto missing = load_site(folder / "none.conf");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().find("none.conf") != std::string::npos);
  const auto broken = load_site(folder.write("broken.conf", "Nonsense=1\n"));
  REQUIRE_FALSE(broken);
  CHECK(broken.error().find("broken.conf") != std::string::npos);
  CHECK(broken.error().find('\n') == std::string::npos);
}

TEST_CASE("the database is the one that was named, else of the environment, else of the site") {
  const SiteConfig config;
  setenv("SPHASE_DB", "/env.db", 1);
  CHECK(chosen_db("/given.db", config) == "/given.db");
  CHECK(chosen_db("", config) == "/env.db");
  unsetenv("SPHASE_DB");
  CHECK(chosen_db("", config) == config.cluster_db);
}
