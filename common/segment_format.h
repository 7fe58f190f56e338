// Numbers of a segment as bytes: what its writer and its reader share. Format: segment.cpp.
#pragma once

#include <cstdint>

#include "common/bytes.h"
#include "common/segment.h"

namespace sphase {

inline constexpr char kFormat = 1;
inline constexpr int kMostOrder = 2;

/// Signed division of a number that the divisor divides.
inline std::uint64_t divide(std::uint64_t number, std::uint64_t divisor) {
  if (divisor == 1) return number;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number) /
                                    static_cast<std::int64_t>(divisor));
}

/// Places in a list of words and the bits of reals are no base for anything.
inline bool may_be_base(SegmentColumn::Type type) { return type == SegmentColumn::Type::kInteger; }

}  // namespace sphase
