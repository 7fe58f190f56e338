// What a built plugin exports, needs, and was linked with, by binutils.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

#include "tests/common/tools.h"

namespace sphase::testing {

inline std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  std::size_t size = 0;
  while ((size = fread(buffer, 1, sizeof(buffer), pipe)) > 0) text.append(buffer, size);
  CHECK(pclose(pipe) == 0);
  return text;
}

inline std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> words;
  for (std::string word; stream >> word;) words.insert(word);
  return words;
}

/// The names in a version script's `global:` part.
inline std::set<std::string> names_in_map(const std::string& path) {
  const std::string text = text_of(path);
  const std::size_t begin = text.find("global:") + 7;
  std::string names = text.substr(begin, text.find("local:") - begin);
  for (char& c : names) c = c == ';' ? ' ' : c;
  return words_of(names);
}

inline std::set<std::string> needed_by(const std::string& file) {
  std::set<std::string> names;
  std::istringstream lines(output_of("readelf -d " + file));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const std::size_t open = line.find('[');
    names.insert(line.substr(open + 1, line.find(']') - open - 1));
  }
  return names;
}

/// The names that `plugin` takes from its host; not libc's, nor the compiler's weak ones.
inline std::set<std::string> taken_from_host(const std::string& plugin) {
  std::set<std::string> taken;
  std::istringstream names(output_of("nm -D --undefined-only " + plugin + " | sed 's/^ *[Uw] //'"));
  for (std::string name; std::getline(names, name);) {
    const bool weak = name.find("__") == 0 || name.find("_ITM_") == 0;
    if (name.find("@GLIBC") == std::string::npos && !weak) taken.insert(name);
    CHECK(name.find("pthread_create") != 0);
    CHECK(name.find("atfork") == std::string::npos);
  }
  return taken;
}

/// Bound at load, never unloaded, relocations read-only.
inline void check_linking(const std::string& plugin) {
  const std::string dynamic = output_of("readelf -dW " + plugin);
  CHECK(dynamic.find("BIND_NOW") != std::string::npos);
  CHECK(dynamic.find("NODELETE") != std::string::npos);
  CHECK(dynamic.find("RPATH") == std::string::npos);
  CHECK(dynamic.find("RUNPATH") == std::string::npos);
  CHECK(dynamic.find("TEXTREL") == std::string::npos);
  CHECK(output_of("readelf -lW " + plugin).find("GNU_RELRO") != std::string::npos);
}

inline std::set<std::string> exported_by(const std::string& plugin) {
  return words_of(output_of("nm -D --defined-only --format=posix " + plugin + " | cut -d' ' -f1"));
}

}  // namespace sphase::testing
