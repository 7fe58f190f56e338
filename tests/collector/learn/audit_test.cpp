#include "collector/learn/audit.h"

#include <doctest/doctest.h>

#include <random>

using namespace sphase;

namespace {

constexpr const char* kLine =
    "sphase/1 profile=1001/~3f2a90cc12ab34ef mode=apply from=job advice=found runs=14 "
    "made=1764536000 asked=nodes:4,tasks:16,cpus:-,memory:8192,time:60 set=nodes:1,memory:5120 "
    "would=- left=time:not-opted-in";

void check_whole(const Audit& audit) {
  CHECK(audit.profile == "1001/~3f2a90cc12ab34ef");
  CHECK(audit.mode == "apply");
  CHECK(audit.from == "job");
  CHECK(audit.advice == "found");
  CHECK(audit.runs == 14);
  CHECK(audit.made_s == 1764536000);
  CHECK(audit.asked.nodes == 4);
  CHECK(audit.asked.tasks == 16);
  CHECK_FALSE(audit.asked.cpus);
  CHECK(audit.asked.memory_mib == 8192);
  CHECK_FALSE(audit.asked.memory_per_cpu);
  CHECK(audit.asked.time_min == 60);
  CHECK(audit.set.nodes == 1);
  CHECK(audit.set.memory_mib == 5120);
  CHECK_FALSE(audit.set.time_min);
  CHECK_FALSE(audit.would.any());
  REQUIRE(audit.left.size() == 1);
  CHECK(audit.left[0].field == "time");
  CHECK(audit.left[0].reason == "not-opted-in");
}

}  // namespace

TEST_CASE("every word of the audit line is read") {
  const auto audit = parse_audit(kLine);
  REQUIRE(audit);
  check_whole(*audit);
}

TEST_CASE("other text may stand around the audit line, and the last line counts") {
  for (const std::string& text :
       {"moved by bob, ticket 7 " + std::string(kLine), std::string(kLine) + " checked by bob",
        "sphase/1 profile=1/old set=nodes:9\n" + std::string(kLine),
        "sphase/10 sphase/1x xsphase/1 " + std::string(kLine)}) {
    INFO(text);
    const auto audit = parse_audit(text);
    REQUIRE(audit);
    check_whole(*audit);
  }
}

TEST_CASE("text without the first word is no audit line") {
  for (const char* text : {"", "sphase", "sphase/2 profile=1/a", "xsphase/1 profile=1/a",
                           "sphase/1profile=1/a", "sphase/11", "SPHASE/1 profile=1/a"}) {
    INFO(text);
    CHECK_FALSE(parse_audit(text));
  }
}

TEST_CASE("memory may be per CPU") {
  const auto audit = parse_audit("sphase/1 asked=memory:2000/cpu set=memory:1500/cpu");
  REQUIRE(audit);
  CHECK(audit->asked.memory_mib == 2000);
  CHECK(audit->asked.memory_per_cpu);
  CHECK(audit->set.memory_mib == 1500);
}

TEST_CASE("a profile that cannot be one is not taken") {
  for (const std::string& wrong :
       {std::string("-"), std::string(""), std::string("1001"), std::string("1001/"),
        std::string("bob/x"), std::string("-5/x"), std::string("/x"), "1/" + std::string(200, 'a'),
        std::string("1/\x01"), std::string("99999999999999999999/x")}) {
    INFO(wrong);
    const auto audit = parse_audit("sphase/1 profile=" + wrong + " mode=observe");
    REQUIRE(audit);
    CHECK(audit->profile.empty());
    CHECK(audit->mode == "observe");
  }
}

TEST_CASE("wrong values are as if they were not there, and the rest is read") {
  for (const char* wrong : {"-", "", "x", "-1", "4x", "4.5", "99999999999999999999", "0x10", " "}) {
    INFO(wrong);
    const auto audit =
        parse_audit("sphase/1 asked=nodes:" + std::string(wrong) + ",time:60 unknown=7 runs=3");
    REQUIRE(audit);
    CHECK_FALSE(audit->asked.nodes);
    CHECK(audit->runs == 3);
  }
  const auto audit = parse_audit("sphase/1 mode=<script> left=a:b,c,:d,e:,F:g,h:i advice");
  REQUIRE(audit);
  CHECK(audit->mode.empty());
  REQUIRE(audit->left.size() == 2);
  CHECK(audit->left[1].field == "h");
}

TEST_CASE("a hostile comment is read in bounded time and space") {
  std::string left = "sphase/1 left=";
  for (int i = 0; i < 200; ++i) left += "a:b,";
  CHECK(parse_audit(left)->left.size() == 16);
  CHECK(parse_audit("sphase/1 " + std::string(5'000'000, 'x')));
  CHECK_FALSE(parse_audit("sphase/1 " + std::string(5000, ' ') + "runs=7")->runs);
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "sphase/1x";
  CHECK_FALSE(parse_audit(many));
}

TEST_CASE("no change of a byte makes it crash or invent what cannot be") {
  std::mt19937 random(7);
  const std::string alphabet = " =:,/-~\n\0019azZ\x7f\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kLine;
    for (int edits = 0; edits < 4; ++edits) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, random() % 9);
      if (text.empty()) break;
      text[random() % text.size()] = alphabet[random() % alphabet.size()];
    }
    const auto audit = parse_audit(text);
    if (!audit) continue;
    CHECK(audit->left.size() <= 16);
    CHECK(audit->profile.size() <= 143);
    CHECK(audit->asked.nodes.value_or(0) >= 0);
    CHECK(audit->mode.size() <= 32);
  }
}
