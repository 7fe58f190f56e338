// What the built plugin exports and needs, and how it is linked.
#include <doctest/doctest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

#include "tests/common/tools.h"

namespace {

std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  std::size_t size = 0;
  while ((size = fread(buffer, 1, sizeof(buffer), pipe)) > 0) text.append(buffer, size);
  CHECK(pclose(pipe) == 0);
  return text;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

/// The names in a version script's `global:` part.
std::set<std::string> names_in_map(const std::string& path) {
  const std::string text = sphase::testing::text_of(path);
  const std::size_t begin = text.find("global:") + 7;
  std::string names = text.substr(begin, text.find("local:") - begin);
  for (char& c : names) c = c == ';' ? ' ' : c;
  return words_of(names);
}

std::set<std::string> needed_by(const std::string& file) {
  std::set<std::string> names;
  std::istringstream lines(output_of("readelf -d " + file));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const std::size_t open = line.find('[');
    names.insert(line.substr(open + 1, line.find(']') - open - 1));
  }
  return names;
}

}  // namespace

TEST_CASE("the plugin exports exactly the names of its version script") {
  const auto exported = words_of(
      output_of("nm -D --defined-only --format=posix " SPHASE_TEST_PLUGIN " | cut -d' ' -f1"));
  CHECK(exported == names_in_map(SPHASE_TEST_MAP));
  CHECK(exported.size() >= 9);
}

TEST_CASE("the plugin is bound at load, is never unloaded, and its relocations are read-only") {
  const std::string dynamic = output_of("readelf -dW " SPHASE_TEST_PLUGIN);
  CHECK(dynamic.find("BIND_NOW") != std::string::npos);
  CHECK(dynamic.find("NODELETE") != std::string::npos);
  CHECK(dynamic.find("RPATH") == std::string::npos);
  CHECK(dynamic.find("RUNPATH") == std::string::npos);
  CHECK(dynamic.find("TEXTREL") == std::string::npos);
  CHECK(output_of("readelf -lW " SPHASE_TEST_PLUGIN).find("GNU_RELRO") != std::string::npos);
}

TEST_CASE("the plugin needs no library but libc") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer brings its own libraries");
#else
  CHECK(needed_by(SPHASE_TEST_PLUGIN) == std::set<std::string>{"libc.so.6"});
#endif
}

TEST_CASE("all that the plugin takes from its host is Slurm's API, and no atfork handler") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer takes names of its own");
#else
  std::istringstream names(
      output_of("nm -D --undefined-only " SPHASE_TEST_PLUGIN " | sed 's/^ *[Uw] //'"));
  int of_slurm = 0;
  for (std::string name; std::getline(names, name);) {
    CAPTURE(name);
    CHECK(name.find("pthread_create") != 0);
    CHECK(name.find("atfork") == std::string::npos);
    if (name.find("@GLIBC") != std::string::npos) continue;
    if (name.find("__") == 0 || name.find("_ITM_") == 0) continue;  // weak, of the compiler
    CHECK((name.find("slurm_") == 0 || name.find("spank_") == 0));
    ++of_slurm;
  }
  CHECK(of_slurm >= 6);
#endif
}

TEST_CASE("the recorder needs neither libslurm nor a C++ library") {
  const auto needed = needed_by(SPHASE_TEST_RECORDER);
  for (const std::string& name : needed) {
    CAPTURE(name);
    CHECK(name.find("slurm") == std::string::npos);
  }
#ifndef SPHASE_TEST_SANITIZED
  CHECK(needed.count("libstdc++.so.6") == 0);
#endif
}

TEST_CASE("the recorder run by hand says what it is for, and returns 2") {
  const std::string text = output_of(SPHASE_TEST_RECORDER " --help 2>&1; [ $? -eq 2 ]");
  CHECK(text.find("srun --phase-telemetry") != std::string::npos);
  CHECK(output_of(SPHASE_TEST_RECORDER " 3<&- 2>&1 </dev/null; [ $? -eq 2 ]") != "");
}
