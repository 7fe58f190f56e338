#include "collector/page/flag_words.h"

#include <doctest/doctest.h>

#include <set>

#include "collector/timeline/usage_row.h"

using namespace sphase;

TEST_CASE("every flag has one word and one meaning") {
  std::set<std::string> words;
  std::uint32_t bits = 0;
  for (const auto& flag : flag_words()) {
    CHECK(words.insert(flag.word).second);
    CHECK((bits & flag.bit) == 0);
    CHECK(std::string(flag.meaning).size() > 10);
    bits |= flag.bit;
  }
  CHECK(bits == (kUnclosed | kFolded | kLate | kInterpolated | kEndLost | kRecorderLost | kOpen |
                 kCrossed | kIoInterpolated | kNoCpu | kNoMemory | kPartial | kOverlap |
                 kSomeCounted | kScaled | kScript));
}

TEST_CASE("a flag that another one implies is not said") {
  CHECK(words_of(kCrossed | kInterpolated) == "crossed");
  CHECK(words_of(kFolded | kInterpolated) == "folded");
  CHECK(words_of(kInterpolated | kLate) == "interpolated, late");
  CHECK(words_of(0).empty());
}
