#include "collector/cluster_db.h"

#include <doctest/doctest.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("cluster.db is made for its owner alone, with the schema's version") {
  const TempFolder folder;
  auto db = open_cluster(folder / "cluster.db");
  REQUIRE(db);
  CHECK(mode_of(folder / "cluster.db") == 0600);
  CHECK(*db->user_version() == kSchemaVersion);
}

TEST_CASE("a cluster.db of a newer version is refused in one line") {
  const TempFolder folder;
  {
    auto db = open_cluster(folder / "cluster.db");
    REQUIRE(db);
    run_sql(*db, "PRAGMA user_version = 7");
  }
  for (const std::string& error :
       {open_cluster(folder / "cluster.db").error(), read_cluster(folder / "cluster.db").error()}) {
    CHECK(error.find("schema version 7, newer than this program") != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  }
}

TEST_CASE("another program's database, and a file that is none, are refused and left alone") {
  const TempFolder folder;
  {
    auto db = Database::open(folder / "other.db", Database::Mode::kCreate);
    run_sql(*db, "CREATE TABLE t (x)");
  }
  CHECK(open_cluster(folder / "other.db").error().find("not a cluster.db") != std::string::npos);
  const auto text = folder.write("text", "hello");
  CHECK_FALSE(open_cluster(text));
  CHECK(text_of(text) == "hello");
}

TEST_CASE("reading where there is none says what would make it") {
  const TempFolder folder;
  CHECK(read_cluster(folder / "none.db").error().find("sphase-collector merge") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "none.db"));
}

TEST_CASE("a folder that does not exist is an error with its reason") {
  CHECK(open_cluster("/nonexistent/cluster.db").error().find("No such file") != std::string::npos);
}

TEST_CASE("network file systems are known by their magic, local ones are not refused") {
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0x0BD00BD0) == "Lustre");
  CHECK(network_file_system(0x47504653) == "GPFS");
  CHECK(network_file_system(static_cast<std::int32_t>(0xFF534D42)) == "CIFS");  // f_type may be < 0
  CHECK_FALSE(network_file_system(0xEF53).has_value());                         // ext4
  CHECK_FALSE(network_file_system(0x01021994).has_value());                     // tmpfs
  CHECK_FALSE(on_network_file_system("/tmp/not-there-yet.db").has_value());
}

TEST_CASE("the database is the one that SPHASE_DB names") {
  setenv("SPHASE_DB", "/x/y.db", 1);
  CHECK(default_cluster_path() == "/x/y.db");
  setenv("SPHASE_DB", "", 1);
  CHECK(default_cluster_path() == "/var/lib/sphase/cluster.db");
  unsetenv("SPHASE_DB");
  CHECK(default_cluster_path() == "/var/lib/sphase/cluster.db");
}
