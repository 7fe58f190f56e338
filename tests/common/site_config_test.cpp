// Source: common/site_config.cpp.
#include "common/site_config.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// "" if it parses, else the sentence.
std::string parse(const std::string& text, SiteConfig& out) {
  char why[256] = "";
  return parse_site_config(text, out, why, sizeof(why)) ? "" : why;
}

std::string parse(const std::string& text) {
  SiteConfig config;
  return parse(text, config);
}

SubmitLimits limits(const std::string& text, const char* partition, const char* account = "",
                    std::uint32_t uid = 1) {
  SiteConfig config;
  CHECK(parse(text, config).empty());
  return limits_for(config, partition, account, uid);
}

}  // namespace

TEST_CASE("an empty file, blanks and comments leave the defaults") {
  for (const char* text : {"", "\n\n", "# Policy=min-time\n", "  \t\r\n#x", "   # only"}) {
    SiteConfig config;
    config.runs_least = 77;  // of an earlier file
    CHECK(parse(text, config).empty());
    CHECK(config.runs_least == 3);
    CHECK(config.limits.mode == ResizeMode::kAdvise);
    CHECK(config.policy.kind == PolicyKind::kEfficiency);
    CHECK(config.rules == 0);
  }
}

TEST_CASE("every key of the site is taken, in any case") {
  SiteConfig config;
  CHECK(parse("AdviceTable=/a/b.cdb\nclusterdatabase=/c\nTHRESHOLD=25 Policy=min-cost\n"
              "MinRuns=5\nMemoryMargin=30\nMemoryMarginLeast=128\nTimeMargin=75\nAdviceExpiry=7\n"
              "WatchInterval=9\nResizeMode=Apply OptIn=nodes,Time\nMinNodes=2 MaxNodes=8\n"
              "MinMemory=1G MaxMemory=2T MinTime=5 MaxTime=60 # the end",
              config)
            .empty());
  CHECK(std::string(config.advice_table) == "/a/b.cdb");
  CHECK(std::string(config.cluster_db) == "/c");
  CHECK(config.threshold_percent == 25);
  CHECK(config.policy.kind == PolicyKind::kMinCost);
  CHECK(config.runs_least == 5);
  CHECK(config.memory_margin_percent == 30);
  CHECK(config.memory_margin_mib == 128);
  CHECK(config.time_margin_percent == 75);
  CHECK(config.expiry_days == 7);
  CHECK(config.watch_interval_s == 9);
  CHECK(config.limits.mode == ResizeMode::kApply);
  CHECK(config.limits.opt_in == (kOptNodes | kOptTime));
  CHECK(config.limits.min_nodes == 2);
  CHECK(config.limits.max_nodes == 8);
  CHECK(config.limits.min_memory_mib == 1024);
  CHECK(config.limits.max_memory_mib == 2 << 20);
  CHECK(config.limits.min_time_min == 5);
  CHECK(config.limits.max_time_min == 60);
}

TEST_CASE(
    "the example sphase.conf holds every key, each with its default, and its rules are right") {
  std::string text = text_of(SPHASE_EXAMPLES "/sphase.conf");
  std::set<std::string> keys;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (!line.empty() && line[0] != '#' && equals != line.npos) keys.insert(line.substr(0, equals));
  }
  CHECK(keys == std::set<std::string>{
                    "AdviceExpiry", "AdviceTable",       "ClusterDatabase", "CollectorAddress",
                    "MaxDatabase",  "MaxMemory",         "MaxNodes",        "MaxTime",
                    "MemoryMargin", "MemoryMarginLeast", "MinMemory",       "MinNodes",
                    "MinRuns",      "MinTime",           "OptIn",           "NodeDatabase",
                    "Policy",       "ResizeMode",        "SampleDays",      "Threshold",
                    "TimeMargin",   "TrustedUsers",      "WatchInterval"});
  SiteConfig example;
  const SiteConfig built_in;
  CHECK(parse(text, example).empty());
  const auto numbers = [](const SiteConfig& c) {
    return std::vector<std::uint64_t>{static_cast<std::uint64_t>(c.limits.mode),
                                      c.limits.opt_in,
                                      c.limits.min_nodes,
                                      c.limits.max_nodes,
                                      c.limits.min_memory_mib,
                                      c.limits.max_memory_mib,
                                      c.limits.min_time_min,
                                      c.limits.max_time_min,
                                      c.threshold_percent,
                                      c.runs_least,
                                      c.memory_margin_percent,
                                      c.memory_margin_mib,
                                      c.time_margin_percent,
                                      c.expiry_days,
                                      c.watch_interval_s,
                                      static_cast<std::uint64_t>(c.policy.kind),
                                      static_cast<std::uint64_t>(c.policy.efficiency_least * 1000),
                                      c.collector_port,
                                      c.sample_days,
                                      c.database_most_mib,
                                      c.rules};
  };
  CHECK(numbers(example) == numbers(built_in));
  CHECK(std::string(example.advice_table) == built_in.advice_table);
  CHECK(std::string(example.cluster_db) == built_in.cluster_db);
  CHECK(std::string(example.collector_host) == built_in.collector_host);
  CHECK(std::string(example.collector_address) == built_in.collector_address);
  CHECK(std::string(example.trusted_users) == built_in.trusted_users);
  CHECK(std::string(example.node_db) == built_in.node_db);
  for (const char* rule : {"# Partition=", "# Account=", "# Uid="}) {
    const auto at = text.rfind(rule);
    REQUIRE(at != text.npos);
    text.erase(at, 2);
  }
  CHECK(parse(text, example).empty());
  CHECK(example.rules == 3);
}

TEST_CASE("the collector is a host, with a port where it is another one") {
  const auto place = [](const std::string& value) {
    SiteConfig config;
    if (!parse("Collector=" + value, config).empty()) return std::string("wrong");
    return std::string(config.collector_host) + " " + std::to_string(config.collector_port);
  };
  CHECK(place("head") == "head 6825");
  CHECK(place("head.example.org:7000") == "head.example.org 7000");
  CHECK(place("192.0.2.1:1") == "192.0.2.1 1");
  CHECK(place("[2001:db8::1]:65535") == "2001:db8::1 65535");
  CHECK(place("[2001:db8::1]") == "2001:db8::1 6825");
  CHECK(place("2001:db8::1") == "2001:db8::1 6825");
  for (const char* bad : {"", ":7000", "head:", "head:0", "head:65536", "head:x", "[::1", "[]:1",
                          "[::1]x", "[::1]x:1"}) {
    CAPTURE(bad);
    CHECK(place(bad) == "wrong");
  }
}

TEST_CASE("memory is MiB, or has a suffix") {
  const auto mib = [](const std::string& value) {
    SiteConfig config;
    CHECK(parse("MinMemory=" + value, config).empty());
    return config.limits.min_memory_mib;
  };
  CHECK(mib("100") == 100);
  CHECK(mib("100m") == 100);
  CHECK(mib("1K") == 1);  // rounded up
  CHECK(mib("2048k") == 2);
  CHECK(mib("3g") == 3072);
  for (const char* bad : {"", "M", "1.5G", "-1", "1GB", "1x", "99999999999999999999", "9999999T"}) {
    CHECK_FALSE(parse(std::string("MinMemory=") + bad).empty());
  }
}

TEST_CASE("a wrong line is told by its number, with what would be right") {
  CHECK(parse("\nThreshold=200\n") ==
        "line 2: Threshold=200: what is right is percent, from 0 to 100");
  CHECK(parse("Polcy=min-time").find("line 1: unknown key \"Polcy\"") == 0);
  CHECK(parse("Policy").find("Policy") != std::string::npos);
  CHECK_FALSE(parse("Policy =min-time").empty());
  CHECK_FALSE(parse("ResizeMode=on").empty());
  CHECK_FALSE(parse("OptIn=nodes,gpus").empty());
  CHECK_FALSE(parse("AdviceTable=relative").empty());
  CHECK_FALSE(parse("AdviceTable=/" + std::string(255, 'x')).empty());
  CHECK(parse("AdviceTable=/" + std::string(254, 'x')).empty());
  CHECK_FALSE(parse("MinRuns=0").empty());
  CHECK(parse("Partition=debug Policy=min-time").find("in a rule") != std::string::npos);
  CHECK(parse(std::string("Threshold=1\0", 12)).find("zero byte") != std::string::npos);
}

TEST_CASE("the sentence holds no control characters and fits") {
  const auto why = parse("\x1b[31mred\x07=" + std::string(5000, 'v'));
  CHECK(why.size() < 256);
  for (const char c : why) CHECK(static_cast<unsigned char>(c) >= ' ');
}

TEST_CASE("a floor above its ceiling is wrong, in the site's keys and in a rule") {
  CHECK(parse("MinNodes=4\nMaxNodes=3") == "line 2: MinNodes is larger than MaxNodes");
  CHECK(parse("MaxNodes=0\nMinNodes=4").empty());  // no ceiling
  CHECK(parse("Partition=a MinMemory=2G MaxMemory=1G").find("MinMemory") != std::string::npos);
  CHECK(parse("Uid=3 MinTime=20 MaxTime=15").find("MinTime") != std::string::npos);
}

TEST_CASE("a rule may set one bound below the other one's default") {
  // The site's own floor is lower than that; a rule that sets no floor has none of its own.
  CHECK(parse("MinTime=1\nPartition=quick MaxTime=5").empty());
  CHECK(parse("MinMemory=16\nPartition=small MaxMemory=64").empty());
}

TEST_CASE("policies: their words, their bounds, and back to text") {
  Policy policy;
  for (const char* text :
       {"efficiency>=0.7", "efficiency>=1", "efficiency>=0.05", "min-time", "min-cost"}) {
    REQUIRE(parse_policy(text, policy));
    char out[24];
    write_policy(policy, out, sizeof(out));
    CHECK(std::string(out) == text);
  }
  for (const char* bad :
       {"", "efficiency", "efficiency>=", "efficiency>=0", "efficiency>=1.01", "efficiency>=nan",
        "efficiency>=inf", "efficiency>=0.7x", "efficiency>=0.04", "efficiency>0.7",
        "efficiency>=0.70000000000000000", "min", "min-timer"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_policy(bad, policy));
  }
}

TEST_CASE("modes have words, and the words are modes") {
  for (const auto mode :
       {ResizeMode::kOff, ResizeMode::kObserve, ResizeMode::kAdvise, ResizeMode::kApply}) {
    ResizeMode read = ResizeMode::kOff;
    CHECK(parse_mode(word_of(mode), read));
    CHECK(read == mode);
  }
}

TEST_CASE("rules: site, partition, account, user; the later one wins") {
  const std::string text =
      "ResizeMode=observe MaxNodes=100\n"
      "Uid=7 MaxNodes=2\n"
      "Account=physics MaxNodes=4 OptIn=memory\n"
      "Partition=batch MaxNodes=8 ResizeMode=apply\n";
  CHECK(limits(text, "other").max_nodes == 100);
  CHECK(limits(text, "batch").max_nodes == 8);
  CHECK(limits(text, "BATCH").mode == ResizeMode::kApply);
  CHECK(limits(text, "batch", "physics").max_nodes == 4);
  CHECK(limits(text, "batch", "physics").mode == ResizeMode::kApply);
  CHECK(limits(text, "batch", "physics").opt_in == kOptMemory);
  CHECK(limits(text, "batch", "physics", 7).max_nodes == 2);
}

TEST_CASE("off at any place is off") {
  CHECK(limits("Partition=a ResizeMode=off\nUid=1 ResizeMode=apply", "a").mode == ResizeMode::kOff);
  CHECK(limits("ResizeMode=off\nUid=1 ResizeMode=apply", "a").mode == ResizeMode::kOff);
  CHECK(limits("Partition=a ResizeMode=off\nPartition=b ResizeMode=apply", "a,b").mode ==
        ResizeMode::kOff);
  CHECK(limits("Partition=a ResizeMode=off", "b").mode == ResizeMode::kAdvise);
}

TEST_CASE("(default) is for jobs that name none") {
  const std::string text = "Partition=(default) MaxNodes=3\nAccount=(Default) MaxTime=30";
  CHECK(limits(text, "").max_nodes == 3);
  CHECK(limits(text, "").max_time_min == 30);
  CHECK(limits(text, "batch", "physics").max_nodes == 0);
  CHECK(limits(text, "batch", "physics").max_time_min == 0);
}

TEST_CASE("there is room for 128 rules, and a sentence for the next") {
  std::string text;
  for (int i = 0; i < 128; ++i) text += "Uid=" + std::to_string(i) + " ResizeMode=off\n";
  SiteConfig config;
  CHECK(parse(text, config).empty());
  CHECK(config.rules == 128);
  CHECK(parse(text + "Uid=128 ResizeMode=off\n").find("line 129: ") == 0);
  CHECK(parse(text + "Threshold=5\n").empty());
}

TEST_CASE("files: read, not there, too long, a folder") {
  const TempFolder folder;
  SiteConfig config;
  char why[400];
  int code = 0;
  CHECK(read_site_config(folder.write("s", "MinRuns=9\n").c_str(), config, why, sizeof(why), code));
  CHECK(config.runs_least == 9);
  CHECK_FALSE(read_site_config((folder / "none").c_str(), config, why, sizeof(why), code));
  CHECK(code == ENOENT);
  CHECK(std::string(why).find("No such file") != std::string::npos);
  CHECK_FALSE(read_site_config(folder.path().c_str(), config, why, sizeof(why), code));
  CHECK(code == EISDIR);
  const auto longer = folder.write("l", std::string(kSiteConfigBytesMost, '\n'));
  CHECK_FALSE(read_site_config(longer.c_str(), config, why, sizeof(why), code));
  CHECK(code == 0);
  CHECK(std::string(why).find("longer than") != std::string::npos);
  const auto wrong = folder.write("w", "x=1");
  CHECK_FALSE(read_site_config(wrong.c_str(), config, why, sizeof(why), code));
  CHECK(std::string(why).find(wrong + ": line 1") == 0);
}

TEST_CASE("the file's place: $SPHASE_CONF, beside slurm.conf, /etc/slurm") {
  const auto path = [](const char* own, const char* slurm) {
    return in_child([&] {
      own != nullptr ? setenv("SPHASE_CONF", own, 1) : unsetenv("SPHASE_CONF");
      slurm != nullptr ? setenv("SLURM_CONF", slurm, 1) : unsetenv("SLURM_CONF");
      char out[300];
      site_config_path(out, sizeof(out));
      const std::string found = out;
      return found == "/x/own.conf"              ? 1
             : found == "/opt/slurm/sphase.conf" ? 2
             : found == "/etc/slurm/sphase.conf" ? 3
                                                 : 4;
    });
  };
  CHECK(path("/x/own.conf", "/opt/slurm/slurm.conf") == 1);
  CHECK(path("", "/opt/slurm/slurm.conf") == 2);
  CHECK(path(nullptr, "slurm.conf") == 3);
  CHECK(path(nullptr, nullptr) == 3);
}

TEST_CASE("random text never does harm") {
  std::mt19937 random(9);
  const std::string words[] = {
      "Partition=", "Uid=",   "MinNodes=", "=",     "#",       "\n", " ",   "9",
      "a",          "OptIn=", ",",         "nodes", "Policy=", "\t", "\xff"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (unsigned i = random() % 12; i > 0; --i) text += words[random() % std::size(words)];
    SiteConfig config;
    char why[64] = "";
    if (parse_site_config(text, config, why, sizeof(why))) {
      const auto found = limits_for(config, "a,9", "a", 9);
      CHECK(found.min_nodes >= 1);
    } else {
      CHECK(std::string(why).size() > 5);
    }
  }
}
