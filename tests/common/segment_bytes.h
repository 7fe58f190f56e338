// Segments made by hand: content that no writer of ours would write, compressed as it should be.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <string>

namespace sphase::testing {

inline std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  return out + static_cast<char>(number);
}

inline std::string name(const std::string& text) { return varint(text.size()) + text; }

inline std::string compressed(const std::string& content) {
  std::string bytes(1 + ZSTD_compressBound(content.size()), '\1');
  const std::size_t size =
      ZSTD_compress(bytes.data() + 1, bytes.size() - 1, content.data(), content.size(), 1);
  bytes.resize(1 + size);
  return bytes;
}

}  // namespace sphase::testing
