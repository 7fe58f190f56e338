#include "collector/page/flag_words.h"

namespace sphase {

const std::vector<FlagWord>& flag_words() {
  static const std::vector<FlagWord> words = {
      {kOpen, "running", "still going on when last heard of"},
      {kUnclosed, "unclosed", "nobody ended it; it ends with its task"},
      {kEndLost, "end-lost", "its end was dropped; it ends where the next marker shows it"},
      {kRecorderLost, "lost", "the recorder ended first; the rest is not known"},
      {kFolded, "folded", "marked too often to keep each; min and max are of those that were kept"},
      {kCrossed, "crossed",
       "a step crosses its edge; CPU time there was computed from two samples"},
      {kInterpolated, "interpolated",
       "CPU time at an edge was computed from two samples around it"},
      {kIoInterpolated, "io-interpolated",
       "I/O at an edge was computed from two samples around it"},
      {kLate, "late", "its counters were read later than a kernel tick after the marker"},
      {kPartial, "partial", "some nodes or tasks told nothing; sums are of the others"},
      {kNoCpu, "no-cpu", "CPU time or CPUs not known; wasted is what memory alone says"},
      {kNoMemory, "no-memory", "memory or its limit not known; wasted is what CPU time alone says"},
      {kOverlap, "overlap", "phases of threads overlap, so that their CPU times cannot be summed"},
      {kSomeCounted, "some-counted", "events are those of some of its tasks only"},
      {kScaled, "scaled", "events took turns to be counted; counts are scaled up"},
      {kScript, "script", "the job script holds the CPUs that its steps use; not counted twice"},
  };
  return words;
}

std::string words_of(std::uint32_t flags, const char* separator) {
  std::string text;
  for (const auto& flag : flag_words()) {
    if ((flags & flag.bit) == 0) continue;
    // These say it already.
    if (flag.bit == kInterpolated && (flags & (kCrossed | kFolded))) continue;
    if (!text.empty()) text += separator;
    text += flag.word;
  }
  return text;
}

const char* word_of(UsageRow::Kind kind) {
  switch (kind) {
    case UsageRow::Kind::kJob:
      return "job";
    case UsageRow::Kind::kJobPhase:
      return "job phase";
    case UsageRow::Kind::kStep:
      return "step";
    case UsageRow::Kind::kTaskPhase:
      return "task phase";
    case UsageRow::Kind::kOutside:
      break;
  }
  return "outside";
}

}  // namespace sphase
