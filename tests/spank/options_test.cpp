#include "spank/options.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

extern "C" {
#include "spank/plugin.h"
}
#include "tests/spank/fake_spank.h"

namespace {

struct Parsed {
  int result = 0;
  sphase_job_options options{};
  std::string why;
};

Parsed parse(const char* text) {
  char why[512] = "";
  Parsed out;
  out.result = sphase_job_options_parse(text, &out.options, why, sizeof(why));
  out.why = why;
  return out;
}

struct Site {
  Site() { sphase_site_options_default(&options); }
  bool take(const std::string& argument) {
    char text[256] = "";
    const int result = sphase_site_option_parse(argument.c_str(), &options, text, sizeof(text));
    why = text;
    return result == 0;
  }
  sphase_site_options options{};
  std::string why;
};

/// One line that says what is wrong and what would be right.
void check_line(const std::string& why, const std::string& wrong, const std::string& right) {
  CAPTURE(why);
  CHECK(why.find(wrong) != std::string::npos);
  CHECK(why.find(right) != std::string::npos);
  CHECK(why.find_first_of("\n\r") == std::string::npos);
}

}  // namespace

TEST_CASE("without a value the option means on, in all the ways Slurm has to say so") {
  for (const char* text : {static_cast<const char*>(nullptr), "", "(null)", "on"}) {
    const Parsed parsed = parse(text);
    CHECK(parsed.result == 0);
    CHECK(parsed.options.on == 1);
    CHECK(parsed.options.period_ms == 0);
    CHECK(std::string(parsed.options.events) == "");
    CHECK(std::string(parsed.options.profile) == "");
  }
}

TEST_CASE("off means off") {
  const Parsed parsed = parse("off");
  CHECK(parsed.result == 0);
  CHECK(parsed.options.on == 0);
}

TEST_CASE("all keys at once") {
  const Parsed parsed = parse("period=500ms,events=PAPI_TOT_INS+perf::L1D:u=1,profile=a/b_1.2-3");
  REQUIRE(parsed.result == 0);
  CHECK(parsed.options.on == 1);
  CHECK(parsed.options.period_ms == 500);
  CHECK(std::string(parsed.options.events) == "PAPI_TOT_INS+perf::L1D:u=1");
  CHECK(std::string(parsed.options.profile) == "a/b_1.2-3");
}

TEST_CASE("a key that comes twice: the last one wins") {
  CHECK(parse("period=1s,period=2s").options.period_ms == 2000);
}

TEST_CASE("the period has a unit and lies between 10 ms and an hour") {
  struct Case {
    const char* text;
    int period_ms;
  };
  for (const Case& c : {Case{"period=10ms", 10},
                        {"period=1s", 1000},
                        {"period=2m", 120'000},
                        {"period=60m", 3'600'000},
                        {"period=3600s", 3'600'000},
                        {"period=3600000ms", 3'600'000},
                        {"period=007s", 7000}}) {
    CAPTURE(c.text);
    CHECK(parse(c.text).result == 0);
    CHECK(parse(c.text).options.period_ms == c.period_ms);
  }
  for (const char* wrong :
       {"period=", "period=1", "period=s", "period=9ms", "period=0s", "period=-1s", "period= 1s",
        "period=+1s", "period=1.5s", "period=1h", "period=1S", "period=1s ", "period=61m",
        "period=3601s", "period=3600001ms", "period=99999999999999999999s", "period=0x10ms"}) {
    CAPTURE(wrong);
    const Parsed parsed = parse(wrong);
    CHECK(parsed.result == -1);
    check_line(parsed.why, wrong, "use period=500ms");
  }
}

TEST_CASE("events=off is for a job or a site") {
  CHECK(std::string(parse("events=off").options.events) == "off");
}

TEST_CASE("events are one word of at most 127 characters") {
  CHECK(parse(("events=" + std::string(127, 'E')).c_str()).result == 0);
  for (const std::string& wrong :
       {std::string("events="), std::string("events=A B"), std::string("events=A;B"),
        std::string("events=Ä"), "events=" + std::string(128, 'E')}) {
    const Parsed parsed = parse(wrong.c_str());
    CHECK(parsed.result == -1);
    check_line(parsed.why, "is not a list of PAPI events", "use events=PAPI_TOT_INS+PAPI_TOT_CYC");
  }
}

TEST_CASE("a profile is a name of at most 127 characters") {
  CHECK(parse(("profile=" + std::string(127, 'p')).c_str()).result == 0);
  for (const std::string& wrong :
       {std::string("profile="), std::string("profile=a b"), std::string("profile=a\nb"),
        std::string("profile=$(x)"), "profile=" + std::string(128, 'p')}) {
    const Parsed parsed = parse(wrong.c_str());
    CHECK(parsed.result == -1);
    check_line(parsed.why, "is not a name", "use letters, digits and _ . - /");
  }
}

TEST_CASE("hooks are off, or some names joined by +; without the key the site's hold") {
  CHECK(parse("period=1s").options.hooks_given == 0);
  struct Case {
    const char* text;
    unsigned hooks;
  };
  for (const Case& c : {Case{"hooks=off", 0},
                        {"hooks=kokkos", kHookKokkos},
                        {"hooks=itt+nvtx", kHookNvtx | kHookItt},
                        {"hooks=preload+preload", kHookPreload},
                        {"hooks=kokkos+nvtx+itt+preload,period=1s",
                         kHookKokkos | kHookNvtx | kHookItt | kHookPreload}}) {
    CAPTURE(c.text);
    const Parsed parsed = parse(c.text);
    CHECK(parsed.result == 0);
    CHECK(parsed.options.hooks_given == 1);
    CHECK(parsed.options.hooks == c.hooks);
  }
  for (const char* wrong :
       {"hooks=", "hooks=on", "hooks=Kokkos", "hooks=kokkos+", "hooks=+kokkos", "hooks=kokkos++itt",
        "hooks=kokkos+off", "hooks=off+kokkos", "hooks=kokkos ", "hooks=kokko", "hooks=kokkosx"}) {
    CAPTURE(wrong);
    const Parsed parsed = parse(wrong);
    CHECK(parsed.result == -1);
    CHECK(parsed.options.hooks_given == 0);
    check_line(parsed.why, wrong, "use hooks=off or some of hooks=kokkos+nvtx+itt+preload");
  }
}

TEST_CASE("what is no key=value, or an unknown key, is told with the right form") {
  for (const char* wrong : {"hello", "On", "OFF", ",", "period=1s,", ",period=1s", "on,period=1s",
                            "period=1s,,profile=a", " "}) {
    CAPTURE(wrong);
    const Parsed parsed = parse(wrong);
    CHECK(parsed.result == -1);
    check_line(parsed.why, "is not key=value", "use --phase-telemetry[=off]");
  }
  for (const char* wrong : {"colour=blue", "Period=1s", "=1s", "period =1s"}) {
    CAPTURE(wrong);
    const Parsed parsed = parse(wrong);
    CHECK(parsed.result == -1);
    check_line(parsed.why, "unknown key", "use --phase-telemetry[=off]");
  }
}

TEST_CASE("a value that is far too long is told, and never overruns") {
  const Parsed parsed = parse(std::string(600, 'x').c_str());
  CHECK(parsed.result == -1);
  check_line(parsed.why, "longer than 511", "use --phase-telemetry[=off]");
  char tiny[8];
  sphase_job_options options;
  CHECK(sphase_job_options_parse("hello", &options, tiny, sizeof(tiny)) == -1);
  CHECK(std::strlen(tiny) < sizeof(tiny));
}

TEST_CASE("control characters in a value cannot break the message into lines") {
  for (const char* wrong : {"a\nb", "x\ny=1", "period=1\r\ns", "profile=a\x1b[2J"}) {
    const Parsed parsed = parse(wrong);
    CHECK(parsed.result == -1);
    CHECK(parsed.why.find_first_of("\n\r\x1b") == std::string::npos);
  }
}

TEST_CASE("random values are accepted or refused, nothing else") {
  std::mt19937 random(3);
  const std::string alphabet = "periodvntsfl=,,0123456789ms+_ \n\x80%";
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const Parsed parsed = parse(text.c_str());
    CHECK((parsed.result == 0) == parsed.why.empty());
  }
}

TEST_CASE("srun and sbatch refuse a wrong value with one line, and take a right one silently") {
  fake_spank_reset();
  CHECK(sphase_local_option("period=1s") == 0);
  CHECK(fake_spank.logged == 0);
  CHECK(sphase_local_option("period=1") == -1);
  CHECK(fake_spank.logged == 1);
  check_line(fake_spank.last_error, "period=1 ", "use period=500ms");
}

TEST_CASE("the site's defaults") {
  const Site site;
  CHECK(site.options.default_on == 0);
  CHECK(site.options.period_ms == 1000);
  CHECK(site.options.max_bytes == INT64_C(1) << 30);
  CHECK(std::string(site.options.node_db) == "/var/spool/sphase/%n/node.db");
  CHECK(std::string(site.options.run_dir) == "/run/sphase");
  CHECK(site.options.hooks == (kHookNvtx | kHookItt));
  CHECK(std::string(site.options.hooks_dir) == "/usr/libexec/sphase/hooks");
}

TEST_CASE("every argument of the plugstack line") {
  Site site;
  CHECK(site.take("default=on"));
  CHECK(site.take("period=5s"));
  CHECK(site.take("events=PAPI_TOT_INS+mpx"));
  CHECK(std::string(site.options.events) == "PAPI_TOT_INS+mpx");
  CHECK(site.take("max_bytes=2G"));
  CHECK(site.take("node_db=/data/%n.db"));
  CHECK(site.take("run_dir=/run/x"));
  CHECK(site.take("recorder=/opt/sphase-recorder"));
  CHECK(site.options.default_on == 1);
  CHECK(site.options.period_ms == 5000);
  CHECK(site.options.max_bytes == INT64_C(2) << 30);
  CHECK(std::string(site.options.node_db) == "/data/%n.db");
  CHECK(std::string(site.options.run_dir) == "/run/x");
  CHECK(std::string(site.options.recorder) == "/opt/sphase-recorder");
  CHECK(site.take("default=off"));
  CHECK(site.options.default_on == 0);
  CHECK(site.take("max_bytes=16M"));
  CHECK(site.take("hooks=itt,kokkos"));
  CHECK(site.options.hooks == (kHookKokkos | kHookItt));
  CHECK(site.take("hooks=off"));
  CHECK(site.options.hooks == 0);
  CHECK(site.take("hooks_dir=/opt/hooks"));
  CHECK(std::string(site.options.hooks_dir) == "/opt/hooks");
}

TEST_CASE("a wrong argument of the plugstack line keeps the default and says what is right") {
  const Site untouched;
  for (const std::string& wrong : {std::string("default=yes"),
                                   std::string("default="),
                                   std::string("period=1"),
                                   std::string("period=61m"),
                                   std::string("events="),
                                   std::string("events=A,B"),
                                   std::string("max_bytes=15M"),
                                   std::string("max_bytes=1"),
                                   std::string("max_bytes=1T"),
                                   std::string("max_bytes=-1G"),
                                   std::string("max_bytes=0G"),
                                   std::string("max_bytes=99999999999999999999G"),
                                   std::string("max_bytes=1000001G"),
                                   std::string("node_db=relative/x"),
                                   std::string("node_db="),
                                   "node_db=/" + std::string(255, 'x'),
                                   "run_dir=/" + std::string(79, 'x'),
                                   std::string("recorder=sphase-recorder"),
                                   "recorder=/" + std::string(255, 'x'),
                                   std::string("hooks="),
                                   std::string("hooks=kokkos,preload"),
                                   std::string("hooks=kokkos+nvtx"),
                                   std::string("hooks_dir=hooks"),
                                   "hooks_dir=/" + std::string(255, 'x')}) {
    CAPTURE(wrong);
    Site site;
    CHECK_FALSE(site.take(wrong));
    check_line(site.why, "is ignored; use ", wrong.substr(0, wrong.find('=') + 1));
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both were zeroed before
    CHECK(std::memcmp(&site.options, &untouched.options, sizeof(site.options)) == 0);
  }
  for (const char* unknown : {"colour=blue", "default", "", "=", "Default=on", "period_=1s"}) {
    CAPTURE(unknown);
    Site site;
    CHECK_FALSE(site.take(unknown));
    check_line(site.why, "unknown argument", "known are default= period= events= max_bytes=");
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): both were zeroed before
    CHECK(std::memcmp(&site.options, &untouched.options, sizeof(site.options)) == 0);
  }
}

TEST_CASE("paths of exactly the size allowed fit") {
  Site site;
  CHECK(site.take("run_dir=/" + std::string(78, 'x')));
  CHECK(site.take("node_db=/" + std::string(254, 'x')));
}

TEST_CASE("%n becomes the node's name and %% a percent sign") {
  char out[32];
  const auto expand = [&](const char* pattern, const char* node = "n1") {
    return sphase_expand_node(pattern, node, out, sizeof(out)) == 0 ? std::string(out) : "refused";
  };
  CHECK(expand("/a/%n/b") == "/a/n1/b");
  CHECK(expand("%n%n") == "n1n1");
  CHECK(expand("100%%") == "100%");
  CHECK(expand("%%n") == "%n");
  CHECK(expand("%x%") == "%x%");
  CHECK(expand("") == "");
  CHECK(expand(std::string(31, 'x').c_str()).size() == 31);
  CHECK(expand(std::string(32, 'x').c_str()) == "refused");
  CHECK(expand((std::string(29, 'x') + "%n").c_str()).size() == 31);
  CHECK(expand((std::string(30, 'x') + "%n").c_str()) == "refused");
  CHECK(expand("%n", std::string(200, 'n').c_str()) == "refused");
}

TEST_CASE("no room at all is refused, not overrun") {
  char out[1] = {'x'};
  CHECK(sphase_expand_node("a", "n", out, 1) == -1);
  CHECK(sphase_expand_node("", "n", out, 1) == 0);
  CHECK(sphase_expand_node("", "n", out, 0) == -1);
}
