#include "common/resize_option.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

namespace {

struct Parsed {
  explicit Parsed(const char* text) { rc = sphase_resize_option_parse(text, &option, why, 256); }
  int rc;
  sphase_resize_option option{};
  char why[256] = "";
};

}  // namespace

TEST_CASE("the four modes, and the two words that may stand behind them") {
  CHECK(Parsed("off").option.mode == SPHASE_RESIZE_OFF);
  CHECK(Parsed("observe").option.mode == SPHASE_RESIZE_OBSERVE);
  CHECK(Parsed("advise").option.mode == SPHASE_RESIZE_ADVISE);
  const Parsed apply("apply");
  CHECK(apply.rc == 0);
  CHECK(apply.option.mode == SPHASE_RESIZE_APPLY);
  CHECK((apply.option.time == 0 && apply.option.plan == 0));
  const Parsed all("apply,plan,time");
  CHECK(all.rc == 0);
  CHECK((all.option.time == 1 && all.option.plan == 1));
}

TEST_CASE("anything else is refused in one line that says what is right, and counts as not given") {
  for (const char* wrong : {"", "Apply", "yes", "apply,", ",apply", "time", "apply,junk",
                            "apply time", "apply,time,", "off\nrm -rf", "applyy"}) {
    const Parsed parsed(wrong);
    CAPTURE(std::string(wrong));
    CHECK(parsed.rc == -1);
    CHECK(parsed.option.mode == SPHASE_RESIZE_UNSET);
    CHECK(std::strstr(parsed.why, "use --phase-resize=off, observe, advise or apply") != nullptr);
    CHECK(std::strpbrk(parsed.why, "\n\r\t") == nullptr);
  }
  CHECK(Parsed(nullptr).rc == -1);
}

TEST_CASE("any bytes are taken or refused") {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 60, ' ');
    for (char& c : text) c = "aply,timeno\xff\n"[random() % 13];
    const Parsed parsed(text.c_str());
    CHECK((parsed.rc == 0) == (parsed.option.mode != SPHASE_RESIZE_UNSET));
  }
}
