// Source: collector/learn/advice_table.cpp.
#include "collector/learn/advice_table.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

Advice advice_of(std::uint32_t runs, std::uint16_t phases = 1) {
  Advice advice;
  std::memset(&advice, 0, sizeof(advice));
  advice.head.runs = runs;
  advice.head.phases = phases;
  advice.head.expires_s = 1000;
  std::strcpy(advice.head.policy, "min-time");
  for (int i = 0; i < phases; ++i) {
    std::strcpy(advice.phase[i].path, "solve");
    advice.phase[i].nodes = runs;
  }
  return advice;
}

std::string key_of(int i) { return "1001/job-" + std::to_string(i); }

std::vector<AdviceEntry> many(int count) {
  std::vector<AdviceEntry> entries;
  for (int i = 0; i < count; ++i) {
    entries.emplace_back(key_of(i), advice_of(static_cast<std::uint32_t>(i), i % 25));
  }
  return entries;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("what is written is found and read again") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  REQUIRE(write_advice_table(path, many(3)));
  CHECK(mode_of(path) == 0600);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"advice.cdb"});
  auto read = read_advice_table(path);
  REQUIRE(read);
  REQUIRE(read->size() == 3);
  CHECK((*read)[2].first == key_of(2));
  CHECK((*read)[2].second.head.runs == 2);
  CHECK((*read)[2].second.phase[1].nodes == 2);
  auto found = find_advice(path, key_of(1), 0);
  REQUIRE(found);
  REQUIRE(*found);
  CHECK((*found)->head.runs == 1);
  CHECK(std::string((*found)->head.policy) == "min-time");
}

TEST_CASE("what is not there or has expired is no error") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  REQUIRE(write_advice_table(path, many(3)));
  auto other = find_advice(path, "1001/other", 0);
  REQUIRE(other);
  CHECK_FALSE(*other);
  auto expired = find_advice(path, key_of(1), 1001);
  REQUIRE(expired);
  CHECK_FALSE(*expired);
  CHECK(read_advice_table(path)->size() == 3);  // expired ones are listed
}

TEST_CASE("an empty table is a table") {
  const TempFolder folder;
  REQUIRE(write_advice_table(folder / "t", {}));
  CHECK(read_advice_table(folder / "t")->empty());
  CHECK_FALSE(*find_advice(folder / "t", "1/x", 0));
}

TEST_CASE("ten thousand entries are all found") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  REQUIRE(write_advice_table(path, many(10'000)));
  CHECK(read_advice_table(path)->size() == 10'000);
  for (const int i : {0, 1, 4321, 9999}) {
    auto found = find_advice(path, key_of(i), 0);
    REQUIRE(found);
    REQUIRE(*found);
    CHECK((*found)->head.runs == static_cast<std::uint32_t>(i));
  }
}

TEST_CASE("a new table replaces the old one, and a reader keeps the one that it has opened") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  REQUIRE(write_advice_table(path, many(3)));
  const std::string before = text_of(path);
  const std::ifstream reader(path, std::ios::binary);
  REQUIRE(write_advice_table(path, many(5)));
  std::string kept{std::istreambuf_iterator<char>(reader.rdbuf()), {}};
  CHECK(kept == before);
  CHECK(read_advice_table(path)->size() == 5);
}

TEST_CASE("no table, no folder, no permission: each is said in a sentence") {
  const TempFolder folder;
  CHECK(has(read_advice_table(folder / "none").error(), "there is no"));
  CHECK(has(find_advice(folder / "none", "1/x", 0).error(), "sphase-collector learn"));
  CHECK(has(write_advice_table(folder / "no/advice.cdb", many(1)).error(), "No such file"));
  std::filesystem::create_directory(folder / "is-a-folder");
  CHECK_FALSE(write_advice_table(folder / "is-a-folder", many(1)));
  CHECK(names_in(folder.path()) == std::vector<std::string>{"is-a-folder"});
}

TEST_CASE(
    "a file left aside by a killed writer is in nobody's way, and a link there not followed") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  const std::string other = folder.write("other", "precious");
  std::filesystem::create_symlink(other, path + ".new-" + std::to_string(getpid()));
  REQUIRE(write_advice_table(path, many(2)));
  CHECK(read_advice_table(path)->size() == 2);
  CHECK(text_of(other) == "precious");
}

TEST_CASE("where root writes it, the table belongs to the owner of its folder (needs root)") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can write for another user");
    return;
  }
  const TempFolder folder;
  REQUIRE(chown(folder.path().c_str(), 1234, 5678) == 0);
  REQUIRE(write_advice_table(folder / "advice.cdb", {}));
  struct stat facts {};
  REQUIRE(stat((folder / "advice.cdb").c_str(), &facts) == 0);
  CHECK(facts.st_uid == 1234);
  CHECK(facts.st_gid == 5678);
  CHECK((facts.st_mode & 07777) == 0600);
}

TEST_CASE("on a full disk the old table stays and nothing is left beside it (needs root)") {
  const TempFolder folder;
  const SmallDisk disk(folder / "disk", "64k");
  if (!disk) {
    MESSAGE("skipped: only root may mount a small disk");
    return;
  }
  const std::string path = disk.path() + "/advice.cdb";
  REQUIRE(write_advice_table(path, many(5)));
  const auto failed = write_advice_table(path, many(1000));
  REQUIRE_FALSE(failed);
  CHECK(has(failed.error(), "No space left"));
  CHECK(names_in(disk.path()) == std::vector<std::string>{"advice.cdb"});
  CHECK(read_advice_table(path)->size() == 5);
  REQUIRE(write_advice_table(path, many(6)));
  CHECK(read_advice_table(path)->size() == 6);
}

TEST_CASE("garbage and empty files are no tables") {
  const TempFolder folder;
  for (const auto& text :
       {std::string(), std::string("garbage"), std::string(5000, '\xff'), std::string(100, '\0')}) {
    const std::string path = folder.write("t", text);
    CHECK_FALSE(read_advice_table(path));
    CHECK_FALSE(find_advice(path, key_of(1), 0));
  }
}

TEST_CASE("a table cut at any place gives right answers or none") {
  const TempFolder folder;
  const auto entries = many(20);
  REQUIRE(write_advice_table(folder / "whole", entries));
  const std::string whole = text_of(folder / "whole");
  for (std::size_t size = 0; size < whole.size(); size += 61) {
    const std::string path = folder.write("cut", whole.substr(0, size));
    auto read = read_advice_table(path);
    if (read) CHECK(read->size() <= entries.size());
    for (int i = 0; i < 20; ++i) {
      auto found = find_advice(path, key_of(i), 0);
      if (found && *found) CHECK((*found)->head.runs == static_cast<std::uint32_t>(i));
    }
  }
}

TEST_CASE("a damaged value is left out of a list, and is an error where it is asked for") {
  const TempFolder folder;
  REQUIRE(write_advice_table(folder / "whole", many(20)));
  std::string whole = text_of(folder / "whole");
  const auto at = whole.find(key_of(7));
  REQUIRE(at != std::string::npos);
  whole[at + key_of(7).size() + 60] ^= 1;
  const std::string path = folder.write("t", whole);
  auto read = read_advice_table(path);
  REQUIRE(read);
  CHECK(read->size() == 19);
  CHECK(std::none_of(read->begin(), read->end(),
                     [](const auto& entry) { return entry.first == key_of(7); }));
  CHECK(has(find_advice(path, key_of(7), 0).error(), "damaged"));
}

TEST_CASE("any flipped byte gives right answers or none") {
  const TempFolder folder;
  REQUIRE(write_advice_table(folder / "whole", many(4)));
  const std::string whole = text_of(folder / "whole");
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string bent = whole;
    bent[at] = static_cast<char>(bent[at] ^ 0x41);
    const std::string path = folder.write("t", bent);
    for (int i = 0; i < 4; ++i) {
      auto found = find_advice(path, key_of(i), 0);
      if (found && *found) CHECK((*found)->head.runs == static_cast<std::uint32_t>(i));
    }
    if (auto read = read_advice_table(path)) CHECK(read->size() <= 4);
  }
}
