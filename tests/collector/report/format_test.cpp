#include "collector/report/format.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("durations use the units that a person would") {
  CHECK(format_duration(0) == "0.000 ms");
  CHECK(format_duration(250'000) == "0.250 ms");
  CHECK(format_duration(12'345'678) == "12.35 ms");
  CHECK(format_duration(999'400'000) == "999.4 ms");
  CHECK(format_duration(999'900'000) == "1.00 s");
  CHECK(format_duration(12'345'000'000) == "12.35 s");
  CHECK(format_duration(13'000'000'000) == "13 s");
  CHECK(format_duration(59'999'000'000) == "1m00s");
  CHECK(format_duration(62'400'000'000) == "1m02s");
  CHECK(format_duration(3'723'000'000'000) == "1h02m03s");
  CHECK(format_duration(100'000'000'000'000) == "1d03h46m");
}

TEST_CASE("bytes are told in binary units, with a digit after the point while it matters") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(12'897'484) == "12.3 MiB");
  CHECK(format_bytes(1023LL << 20) == "1.0 GiB");
  CHECK(format_bytes(123LL << 30) == "123 GiB");
  CHECK(format_bytes(INT64_MAX) == "8.0 EiB");
}

TEST_CASE("numbers keep what can be read at a glance") {
  CHECK(format_number(0) == "0");
  CHECK(format_number(0.001) == "<0.01");
  CHECK(format_number(0.123) == "0.12");
  CHECK(format_number(3.44) == "3.4");
  CHECK(format_number(4) == "4");
  CHECK(format_number(99.96) == "100");
  CHECK(format_number(45678.4) == "45678");
  CHECK(format_percent(0.874) == "87 %");
}

TEST_CASE("what is not known is a dash, and not 0") {
  CHECK(or_dash(std::optional<std::int64_t>(), format_bytes) == "-");
  CHECK(or_dash(std::optional<std::int64_t>(0), format_bytes) == "0 B");
  CHECK(or_dash(std::optional<std::string>()) == "-");
  CHECK(or_dash(std::optional<std::string>("a\x1b[1m")) == "a\\x1b[1m");
}

TEST_CASE("text of a job cannot steer the terminal") {
  CHECK(clean("plain name-1.2/ok") == "plain name-1.2/ok");
  CHECK(clean("a\nb\tc\r") == "a\\x0ab\\x09c\\x0d");
  CHECK(clean("\x1b[2J\x1b]0;title\x07") == "\\x1b[2J\\x1b]0;title\\x07");
  CHECK(clean(std::string("nul\0byte", 8)) == "nul\\x00byte");
  CHECK(clean("\x7f") == "\\x7f");
  CHECK(clean("\xc2\x9b"
              "31m") == "\\xc2\\x9b31m");  // CSI as one character
  CHECK(clean("\x9b"
              "31m") == "\\x9b31m");  // and as one byte
  CHECK(clean("a\xe2\x80\xae"
              "b") == "a\\xe2\\x80\\xaeb");  // right to left from here
  CHECK(clean("a\xe2\x80\x8b"
              "b") == "a\\xe2\\x80\\x8bb");  // takes no room
}

TEST_CASE("letters of any language are left as they are, bytes that are no text are shown") {
  CHECK(clean("Größe µ 相") == "Größe µ 相");
  CHECK(clean("\xc3") == "\\xc3");           // cut short
  CHECK(clean("\xc0\xaf") == "\\xc0\\xaf");  // a slash, written too long
  CHECK(clean("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  CHECK(clean("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a pair
  CHECK(clean("\xf5\x80\x80\x80") == "\\xf5\\x80\\x80\\x80");
}

TEST_CASE("width counts characters, and a long text is cut in the middle") {
  CHECK(width("Größe") == 5);
  CHECK(shorten("short", 10) == "short");
  CHECK(shorten("abcdefghij", 5) == "ab…ij");
  CHECK(width(shorten("äöüäöüäöüäöü", 7)) == 7);
}

TEST_CASE("a CSV field is quoted where it must be") {
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  CHECK(csv_field("").empty());
}

TEST_CASE("counts have three digits and a power of 1000") {
  CHECK(format_count(0) == "0");
  CHECK(format_count(999) == "999");
  CHECK(format_count(999.6) == "1.00 k");
  CHECK(format_count(1234) == "1.23 k");
  CHECK(format_count(45'600'000) == "45.6 M");
  CHECK(format_count(999'600'000) == "1.00 G");
  CHECK(format_count(7.89e20) == "789 E");
}
