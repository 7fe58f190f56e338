#include "spank/recorder/file.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/common/tools.h"

using namespace sphase;
using sphase::testing::TempFolder;

TEST_CASE("a number is found in its text, or there is none") {
  CHECK(parse_number("42\n") == 42);
  CHECK(parse_number("  7 8") == 7);
  CHECK(parse_number("9223372036854775807") == INT64_MAX);
  CHECK(parse_number("9223372036854775808") == std::nullopt);
  CHECK(parse_number("max\n") == std::nullopt);
  CHECK(parse_number("") == std::nullopt);
}

TEST_CASE("a key is found only as a whole word at the start of a line") {
  const char* const text = "anon_thp 1\nnot anon 2\nanon 3\nfile: 4\nanon 5";
  CHECK(number_after(text, "anon") == 5);
  CHECK(number_after(text, "anon_thp") == 1);
  CHECK(number_after(text, "file") == 4);
  CHECK(number_after(text, "ano") == std::nullopt);
  CHECK(number_after(text, "kernel") == std::nullopt);
  CHECK(number_after("", "anon") == std::nullopt);
  CHECK(number_after("anon", "anon") == std::nullopt);
  CHECK(number_after("anon max", "anon") == std::nullopt);
}

TEST_CASE("several keys are found in one pass, and only those that are there") {
  std::optional<std::int64_t> a, b, c;
  numbers_after("x 1\ny 2\n", {{"x", &a}, {"y", &b}, {"z", &c}});
  CHECK(a == 1);
  CHECK(b == 2);
  CHECK(c == std::nullopt);
}

TEST_CASE("a descriptor is closed once, whoever it was moved to") {
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  Fd first = open_read(path);
  const int number = first.get();
  REQUIRE(first);
  Fd second(std::move(first));
  CHECK(second.get() == number);
  second = Fd();
  CHECK(fcntl(number, F_GETFD) == -1);
  CHECK_FALSE(open_read(folder / "none"));
}

TEST_CASE("a kept file is read anew each time, and what is gone reads as nothing") {
  const TempFolder folder;
  const std::string path = folder.write("a", "one");
  const Fd kept = open_read(path);
  char buffer[64];
  CHECK(read_again(kept, buffer) == "one");
  folder.write("a", "three");
  CHECK(read_again(kept, buffer) == "three");
  CHECK(read_again(Fd(), buffer).empty());
  char tiny[2];
  CHECK(read_again(kept, tiny) == "th");
}

TEST_CASE("a whole file is read up to a limit, and a folder is none") {
  const TempFolder folder;
  CHECK(read_file(folder.write("a", std::string(20000, 'x')))->size() == 20000);
  CHECK(read_file(folder.write("b", std::string(3 << 20, 'x')))->size() <= (1 << 20) + 8192);
  CHECK(read_file(folder.write("c", "")) == "");
  CHECK(read_file(folder / "none") == std::nullopt);
  CHECK(read_file(folder.path()) == std::nullopt);
}
