// Source: common/profile_key.cpp.
#include "common/profile_key.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace sphase;

namespace {

std::string key_of(const std::string& name, const std::string& script) {
  return std::string(profile_key(1001, "", name, script).view());
}

const std::string kScript =
    "#!/bin/bash\n"
    "#SBATCH --mem=4G\n"
    "srun ./solver input.dat\n";

}  // namespace

TEST_CASE("FNV-1a gives the published values") {
  // Fowler, Noll, Vo: test vectors of draft-eastlake-fnv.
  CHECK(fnv1a("") == 0xcbf29ce484222325U);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cU);
  CHECK(fnv1a("foobar") == 0x85944171f73967e8U);
  CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
}

TEST_CASE("a user's name for it is the key, whatever the script is") {
  CHECK(profile_key(1001, "solver", "a", "x").view() == "1001/solver");
  CHECK(profile_key(1001, "solver", "b", "y").view() == "1001/solver");
  CHECK(profile_key(4294967295U, "s", "", "").view() == "4294967295/s");
}

TEST_CASE("without a name the key is the user and a hash") {
  const std::string key = key_of("job", kScript);
  CHECK(key.substr(0, 6) == "1001/~");
  CHECK(key.size() == 6 + 16);
  CHECK(key.find_first_not_of("0123456789abcdef", 6) == std::string::npos);
  CHECK(profile_key(1002, "", "job", kScript).view().substr(5) == key.substr(5));
  CHECK(profile_key(1002, "", "job", kScript).view() != key);
}

TEST_CASE("what does not change the work does not change the key") {
  const std::string key = key_of("job", kScript);
  CHECK(key_of("job", "#!/bin/sh\n#SBATCH --mem=99G -N 7\n# a remark\nsrun ./solver input.dat\n") ==
        key);
  CHECK(key_of("job", "\n\n  srun   ./solver\t\tinput.dat  \r\n\n") == key);
  CHECK(key_of("job", "srun ./solver input.dat") == key);  // no newline at the end
}

TEST_CASE("what changes the work changes the key") {
  const std::string key = key_of("job", kScript);
  CHECK(key_of("job", "srun ./solver other.dat\n") != key);
  CHECK(key_of("job", "srun ./solverinput.dat\n") != key);
  CHECK(key_of("job", kScript + kScript) != key);
  CHECK(key_of("job", "srun ./solver\ninput.dat\n") != key);
  CHECK(key_of("other", kScript) != key);
  CHECK(key_of("", kScript) != key);
}

TEST_CASE("numbers in a job's name do not matter, their place does") {
  CHECK(key_of("run-17", kScript) == key_of("run-4", kScript));
  CHECK(key_of("7run-17", kScript) == key_of("12345run-0", kScript));
  CHECK(key_of("run-17", kScript) != key_of("run-", kScript));
  CHECK(key_of("a1b", kScript) != key_of("ab1", kScript));
}

TEST_CASE("name and script do not run into each other") {
  CHECK(key_of("ab", "c") != key_of("a", "bc"));
}

TEST_CASE("a long name is cut so that the key fits") {
  const auto key = profile_key(4294967295U, std::string(500, 'n'), "", "");
  CHECK(key.size == 10 + 1 + 127);
  CHECK(std::string(key.text) == "4294967295/" + std::string(127, 'n'));
}

TEST_CASE("empty, binary and huge scripts have keys, at bounded cost") {
  CHECK(key_of("job", "") == key_of("job", "# nothing but a comment\n"));
  CHECK(key_of("job", std::string("\0\xff\n", 3)) != key_of("job", ""));
  const std::string head(kScriptBytesHashed, 'x');
  CHECK(key_of("job", head + "a") == key_of("job", head + "b"));  // beyond what is looked at
  const std::string huge(64 << 20, '\n');
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(key_of("job", huge).empty());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100));
}
