#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "marker/internal.h"

namespace {

std::string bytes(const sphase_text& text) { return {text.bytes, text.length}; }

std::string phase(const std::string& name) {
  sphase_text text;
  REQUIRE(sphase_text_phase(&text, name.c_str()) == 1);
  return bytes(text);
}

bool was_cut(const std::string& name) {
  sphase_text text;
  sphase_text_phase(&text, name.c_str());
  return (text.flags & SPHASE_FLAG_TRUNCATED) != 0;
}

std::uint32_t hash(const std::string& name) {
  sphase_text text;
  sphase_text_phase(&text, name.c_str());
  return text.hash;
}

}  // namespace

TEST_CASE("a name that is NULL or empty is nothing to record") {
  sphase_text text;
  CHECK(sphase_text_phase(&text, nullptr) == 0);
  CHECK(sphase_text_phase(&text, "") == 0);
  CHECK(sphase_text_label(&text, nullptr) == 0);
  CHECK(sphase_text_pair(&text, "", "value") == 0);
  CHECK(sphase_text_pair(&text, nullptr, "value") == 0);
}

TEST_CASE("a name of 80 bytes is kept whole, one of 81 is cut and says so") {
  CHECK(phase(std::string(80, 'a')) == std::string(80, 'a'));
  CHECK_FALSE(was_cut(std::string(80, 'a')));
  CHECK(phase(std::string(81, 'a')) == std::string(80, 'a'));
  CHECK(was_cut(std::string(81, 'a')));
  CHECK(phase(std::string(5000, 'a')).size() == 80);
}

TEST_CASE("a name is never cut inside a UTF-8 character") {
  const std::string two = "\u00e9";
  const std::string three = "\u20ac";
  const std::string four = "\U0001f600";
  for (const std::string& letter : {two, three, four}) {
    for (std::size_t before = 70; before < 80; ++before) {
      std::string name(before, 'a');
      while (name.size() <= 80) name += letter;
      const std::string cut = phase(name);
      CHECK(cut == name.substr(0, cut.size()));
      CHECK((cut.size() - before) % letter.size() == 0);
      CHECK(cut.size() > 80 - letter.size());
      CHECK(cut.size() <= 80);
      CHECK(was_cut(name));
    }
  }
}

TEST_CASE("bytes that are not UTF-8 are cut at 80 and otherwise kept") {
  CHECK(phase(std::string(100, '\x80')).size() == 80);
  CHECK(phase("a\xff\xfe") == "a\xff\xfe");
}

TEST_CASE("control characters become question marks") {
  CHECK(phase("a\nb\tc\x1b[31m\x7f") == "a?b?c?[31m?");
}

TEST_CASE("a slash becomes an underscore in the name of a phase, and only there") {
  CHECK(phase("io/read") == "io_read");
  sphase_text text;
  REQUIRE(sphase_text_label(&text, "GB/s") == 1);
  CHECK(bytes(text) == "GB/s");
  REQUIRE(sphase_text_pair(&text, "a/b", "/scratch") == 1);
  CHECK(bytes(text) == std::string("a/b\0/scratch", 12));
}

TEST_CASE("what follows the text is zero") {
  sphase_text text;
  std::memset(&text, 0x55, sizeof text);
  REQUIRE(sphase_text_phase(&text, "solve") == 1);
  for (std::size_t i = text.length; i < SPHASE_TEXT_BYTES; ++i) CHECK(text.bytes[i] == 0);
  std::string cut(79, 'a');
  cut += "\u20ac";
  REQUIRE(sphase_text_phase(&text, cut.c_str()) == 1);
  CHECK(text.length == 79);
  CHECK(text.bytes[79] == 0);
}

TEST_CASE("equal names have equal hashes, others differ, none is 0") {
  CHECK(hash("solve") == hash("solve"));
  CHECK(hash("solve") != hash("evlos"));
  CHECK(hash(std::string(200, 'x')) == hash(std::string(200, 'x')));
  CHECK(hash("a") != 0);
}

TEST_CASE("a key and its value share 80 bytes") {
  sphase_text text;
  REQUIRE(sphase_text_pair(&text, "cells", "1e6") == 1);
  CHECK(bytes(text) == std::string("cells\0001e6", 9));
  CHECK(text.flags == 0);
  REQUIRE(sphase_text_pair(&text, "cells", nullptr) == 1);
  CHECK(bytes(text) == std::string("cells\0", 6));
  REQUIRE(sphase_text_pair(&text, "cells", std::string(80, 'v').c_str()) == 1);
  CHECK(text.length == 80);
  CHECK(text.flags == SPHASE_FLAG_TRUNCATED);
  REQUIRE(sphase_text_pair(&text, std::string(80, 'k').c_str(), "v") == 1);
  CHECK(bytes(text) == std::string(79, 'k') + std::string(1, '\0'));
  CHECK(text.flags == SPHASE_FLAG_TRUNCATED);
}
