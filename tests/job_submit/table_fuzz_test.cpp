#include "tests/job_submit/table_fuzz.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "job_submit/lookup.h"
#include "tests/common/tools.h"
#include "tests/job_submit/submission.h"
#include "tests/job_submit/table_file.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string seed_table(const TempFolder& folder) {
  const std::string path = folder / "advice.cdb";
  TableFile table(path);
  for (int i = 0; i < kFuzzProfiles; ++i) {
    Advice advice = learned();
    if (i % 2 == 0) add_phases(advice);
    advice.head.nodes = fuzz_nodes(i);
    table.add(fuzz_key(i), advice);
  }
  table.done();
  return path;
}

Bytes read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A few changes of the kinds that disks, copies and people make.
Bytes damaged(const Bytes& seed, std::mt19937& random) {
  Bytes bytes = seed;
  const auto at = [&](std::size_t size) { return random() % (size != 0 ? size : 1); };
  for (unsigned changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t from = at(bytes.size()), to = at(bytes.size());
    const std::size_t size =
        std::min({std::size_t{1} << (random() % 9), bytes.size() - from, bytes.size() - to});
    switch (random() % 6) {
      case 0:
        bytes[from] ^= static_cast<std::uint8_t>(1U << (random() % 8));
        break;
      case 1:
        bytes.resize(from);
        break;
      case 2:
        std::memmove(bytes.data() + to, bytes.data() + from, size);
        break;
      case 3:
        for (std::size_t i = 0; i < size; ++i)
          bytes[from + i] = static_cast<std::uint8_t>(random());
        break;
      case 4:
        std::memset(bytes.data() + from, random() % 2 != 0 ? 0xFF : 0, size);
        break;
      default:  // a pointer of one slot in another
        for (std::size_t i = 0; i < 4 && (from | 3) < bytes.size() && (to | 3) < bytes.size();
             ++i) {
          bytes[(to & ~std::size_t{3}) + i] = bytes[(from & ~std::size_t{3}) + i];
        }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a sound table gives each profile its own answer") {
  const TempFolder folder;
  const std::string path = seed_table(folder);
  for (int i = 0; i < kFuzzProfiles; ++i) {
    Advice advice;
    int failed = 0;
    CHECK(look_up(path.c_str(), fuzz_key(i), 1000, advice, failed) == AdviceState::kFound);
    CHECK(advice.head.nodes == fuzz_nodes(i));
  }
  Advice advice;
  int failed = 0;
  CHECK(look_up(path.c_str(), "1001/other", 1000, advice, failed) == AdviceState::kMissing);
  CHECK(failed == 0);
  CHECK(look_up(path.c_str(), fuzz_key(0), std::int64_t{1} << 40, advice, failed) ==
        AdviceState::kExpired);
}

TEST_CASE("a damaged table gives no answer, or the right one, never another profile's") {
  const TempFolder folder;
  const Bytes seed = read_all(seed_table(folder));
  std::mt19937 random(20261130);
  for (int i = 0; i < 100'000; ++i) {
    const Bytes bytes = damaged(seed, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST_CASE("a part of the index that claims more slots than it has is not searched") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  TableFile table(path);
  for (int i = 0; i < 20'000; ++i) table.add("1001/p" + std::to_string(i), learned());
  table.done();
  const auto states = [&](AdviceState wanted) {
    int count = 0;
    for (int i = 0; i < 20'000; ++i) {
      Advice advice;
      int failed = 0;
      const std::string key = "1001/p" + std::to_string(i);
      count += look_up(path.c_str(), key, 0, advice, failed) == wanted ? 1 : 0;
    }
    return count;
  };
  CHECK(states(AdviceState::kFound) == 20'000);
  Bytes bytes = read_all(path);
  for (int part = 0; part < 256; ++part) bytes[static_cast<std::size_t>(part) * 8 + 6] ^= 4;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CHECK(states(AdviceState::kDamaged) == 20'000);
}

TEST_CASE("two entries with each other's values give no answer") {
  const TempFolder folder;
  const std::string path = folder / "advice.cdb";
  Advice advice = learned();
  const std::size_t size = seal_advice("1001/a", advice);
  TableFile table(path);
  table.add_bytes("1001/b", {reinterpret_cast<const char*>(&advice), size});
  advice.head.version = 2;
  table.add_bytes("1001/newer", {reinterpret_cast<const char*>(&advice), size});
  table.add_bytes("1001/long", std::string(100'000, 'x'));
  table.add_bytes("1001/short", "x");
  table.done();
  Advice out;
  int failed = 0;
  CHECK(look_up(path.c_str(), "1001/b", 0, out, failed) == AdviceState::kDamaged);
  CHECK(look_up(path.c_str(), "1001/newer", 0, out, failed) == AdviceState::kOtherVersion);
  CHECK(look_up(path.c_str(), "1001/long", 0, out, failed) == AdviceState::kDamaged);
  CHECK(look_up(path.c_str(), "1001/short", 0, out, failed) == AdviceState::kDamaged);
  CHECK(out.head.nodes == 0);
}
