// Source: common/advice.cpp.
#include "common/advice.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

using namespace sphase;

namespace {

constexpr const char* kKey = "1001/solver";

Advice advice_of(std::uint16_t phases) {
  Advice advice;
  std::memset(&advice, 0, sizeof(advice));
  advice.head.phases = phases;
  advice.head.runs = 14;
  advice.head.nodes = 4;
  advice.head.expires_s = 1000;
  advice.head.memory_peak_bytes = 900;
  advice.head.memory_bytes = 1000;
  std::strcpy(advice.head.policy, "min-time");
  for (int i = 0; i < phases; ++i) std::strcpy(advice.phase[i].path, "solve");
  return advice;
}

std::string sealed(Advice advice, const char* key = kKey) {
  const std::size_t size = seal_advice(key, advice);
  return {reinterpret_cast<const char*>(&advice), size};
}

AdviceState read(const std::string& bytes, std::int64_t now_s = 0, const char* key = kKey) {
  Advice out;
  return read_advice(key, bytes, now_s, out);
}

}  // namespace

TEST_CASE("what was sealed is read as it was") {
  for (const std::uint16_t phases : {0, 1, 24}) {
    const std::string bytes = sealed(advice_of(phases));
    CHECK(bytes.size() == sizeof(AdviceHeader) + phases * sizeof(AdvicePhase));
    Advice out;
    CHECK(read_advice(kKey, bytes, 0, out) == AdviceState::kFound);
    CHECK(out.head.runs == 14);
    CHECK(out.head.phases == phases);
    if (phases > 0) CHECK(std::string(out.phase[phases - 1].path) == "solve");
  }
  CHECK(sealed(advice_of(24)).size() == kAdviceBytesMost);
}

TEST_CASE("more phases than there is room for are not sealed") {
  Advice advice = advice_of(24);
  advice.head.phases = 60;
  CHECK(seal_advice(kKey, advice) == kAdviceBytesMost);
  CHECK(advice.head.phases == 24);
}

TEST_CASE("a value under another key is damaged") {
  CHECK(read(sealed(advice_of(1), "1002/solver")) == AdviceState::kDamaged);
}

TEST_CASE("no flipped bit gives an answer") {
  const std::string bytes = sealed(advice_of(2));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bent = bytes;
    bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << bit % 8));
    CHECK(read(bent) != AdviceState::kFound);
  }
}

TEST_CASE("cut, lengthened and empty values are damaged") {
  const std::string bytes = sealed(advice_of(2));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK(read(bytes.substr(0, size)) == AdviceState::kDamaged);
  }
  CHECK(read(bytes + '\0') == AdviceState::kDamaged);
  CHECK(read(std::string(100'000, '\xff')) == AdviceState::kDamaged);
}

TEST_CASE("another version is said to be one") {
  std::string bytes = sealed(advice_of(1));
  bytes[offsetof(AdviceHeader, version)] = 9;
  CHECK(read(bytes) == AdviceState::kOtherVersion);
}

TEST_CASE("advice is good until its last second") {
  const std::string bytes = sealed(advice_of(1));
  CHECK(read(bytes, 1000) == AdviceState::kFound);
  CHECK(read(bytes, 1001) == AdviceState::kExpired);
}

TEST_CASE("a value that was sealed with nonsense in it is damaged all the same") {
  const auto with = [](auto change) {
    Advice advice = advice_of(1);
    change(advice);
    return read(sealed(advice));
  };
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  CHECK(with([&](Advice&) {}) == AdviceState::kFound);
  CHECK(with([&](Advice& a) { a.head.time_s = nan; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.head.time_high_s = inf; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.head.time_low_s = -1; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.head.confidence = nan; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.phase[0].cpus_busy = -1; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.phase[0].time_s = inf; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.head.memory_bytes = 899; }) == AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { a.head.memory_bytes = 0; }) == AdviceState::kFound);  // none
  CHECK(with([&](Advice& a) { std::memset(a.head.policy, 'x', sizeof(a.head.policy)); }) ==
        AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { std::memset(a.head.partition, 'x', sizeof(a.head.partition)); }) ==
        AdviceState::kDamaged);
  CHECK(with([&](Advice& a) { std::memset(a.phase[0].path, 'x', sizeof(a.phase[0].path)); }) ==
        AdviceState::kDamaged);
}

TEST_CASE("each state has a word of its own") {
  CHECK(std::string(word_of(AdviceState::kFound)) == "found");
  CHECK(std::string(word_of(AdviceState::kMissing)) == "none");
  CHECK(std::string(word_of(AdviceState::kDamaged)) == "damaged");
  CHECK(std::string(word_of(AdviceState::kOtherVersion)) == "other-version");
  CHECK(std::string(word_of(AdviceState::kExpired)) == "expired");
}
