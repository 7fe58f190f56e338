// What the built plugin exports and needs, and how it is linked.
#include "tests/common/plugin_file.h"

using namespace sphase::testing;

TEST_CASE("the plugin exports exactly the names of its version script") {
  const auto exported = exported_by(SPHASE_TEST_PLUGIN);
  CHECK(exported == names_in_map(SPHASE_TEST_MAP));
  CHECK(exported.size() >= 9);
}

TEST_CASE("the plugin is bound at load, is never unloaded, and its relocations are read-only") {
  check_linking(SPHASE_TEST_PLUGIN);
}

TEST_CASE("the plugin needs no library but libc (not under a sanitizer)") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer brings its own libraries");
#else
  CHECK(needed_by(SPHASE_TEST_PLUGIN) == std::set<std::string>{"libc.so.6"});
#endif
}

TEST_CASE(
    "all that the plugin takes from its host is Slurm's API, and no atfork handler (not under a "
    "sanitizer)") {
#ifdef SPHASE_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer takes names of its own");
#else
  const auto taken = taken_from_host(SPHASE_TEST_PLUGIN);
  for (const std::string& name : taken) {
    CAPTURE(name);
    CHECK((name.find("slurm_") == 0 || name.find("spank_") == 0));
  }
  CHECK(taken.size() >= 6);
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
