// Source: cli/write_file.cpp.
#include "cli/write_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a file is replaced as a whole, and nothing is left beside it") {
  const TempFolder folder;
  folder.write("page", "old and longer");
  REQUIRE(write_file(folder / "page", "new"));
  CHECK(text_of(folder / "page") == "new");
  const std::filesystem::directory_iterator entries(folder.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("what a link points to is replaced, not the link") {
  const TempFolder folder;
  folder.write("page", "old");
  REQUIRE(symlink("page", (folder / "link").c_str()) == 0);
  REQUIRE(write_file(folder / "link", "new"));
  CHECK(text_of(folder / "page") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("what is no regular file is written into") {
  CHECK(write_file("/dev/null", "text"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a full disk is told, and the old file stays") {
  const auto full = write_file("/dev/full", "text");
  REQUIRE_FALSE(full);
  CHECK(full.error() == "cannot write /dev/full: No space left on device");
  const TempFolder folder;
  const SmallDisk disk(folder / "disk", "64k");
  if (!disk) {
    MESSAGE("skipped: no small disk can be mounted here");
    return;
  }
  folder.write("disk/page", "old");
  CHECK_FALSE(write_file(folder / "disk/page", std::string(200'000, 'x')));
  CHECK(text_of(folder / "disk/page") == "old");
  const std::filesystem::directory_iterator entries(folder / "disk");
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("a folder that is not there is told") {
  const auto missing = write_file("/nonexistent/page", "text");
  REQUIRE_FALSE(missing);
  CHECK(missing.error() == "cannot write /nonexistent/page: No such file or directory");
}
