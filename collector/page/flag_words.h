// The flags and the kind of a row as short words, and what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/timeline/usage_row.h"

namespace sphase {

struct FlagWord {
  std::uint32_t bit;
  const char* word;
  const char* meaning;
};

/// Every flag, in the order in which they are printed.
const std::vector<FlagWord>& flag_words();

/// "unclosed, late"
std::string words_of(std::uint32_t flags, const char* separator = ", ");

/// "job", "job phase", "step", "task phase", "outside"
const char* word_of(UsageRow::Kind kind);

}  // namespace sphase
