// Numbers of a segment as bytes: what its writer and its reader share. Format: segment.cpp.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "common/segment.h"

namespace sphase {

inline constexpr char kFormat = 1;
inline constexpr int kMostOrder = 2;

inline std::uint64_t zigzag(std::uint64_t number) { return (number << 1) ^ (0 - (number >> 63)); }
inline std::uint64_t unzigzag(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

/// Signed division of a number that the divisor divides.
inline std::uint64_t divide(std::uint64_t number, std::uint64_t divisor) {
  if (divisor == 1) return number;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number) /
                                    static_cast<std::int64_t>(divisor));
}

inline std::size_t varint_bytes(std::uint64_t number) {
  return (static_cast<std::size_t>(std::bit_width(number | 1)) + 6) / 7;
}

inline void put_varint(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

/// Places in a list of words and the bits of reals are no base for anything.
inline bool may_be_base(SegmentColumn::Type type) { return type == SegmentColumn::Type::kInteger; }

}  // namespace sphase
