#include "collector/wire/frame.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

std::array<char, kHeaderBytes> header_of(std::string_view frame) {
  std::array<char, kHeaderBytes> bytes{};
  for (std::size_t i = 0; i < kHeaderBytes; ++i) bytes[i] = frame[i];
  return bytes;
}

/// The header as numbers, whatever they say.
std::array<char, kHeaderBytes> header_of(std::uint32_t length, int type) {
  const auto byte = [&](int shift) { return static_cast<char>(length >> shift & 0xff); };
  return {byte(24), byte(16), byte(8), byte(0), static_cast<char>(type)};
}

}  // namespace

TEST_CASE("a frame is its length, most significant byte first, its type and its body") {
  CHECK(frame_of(FrameType::kHello, "abc") == std::string("\0\0\0\4\2abc", 8));
  const std::string large = frame_of(FrameType::kShip, std::string(0x01020304, 'x'));
  CHECK(large.substr(0, 5) == std::string("\1\2\3\5\x8", 5));
}

TEST_CASE("the header of each type of frame comes back") {
  for (int type = 1; type <= 11; ++type) {
    for (const std::size_t size : {0, 1, 255, 256, 70'000}) {
      const std::string frame = frame_of(static_cast<FrameType>(type), std::string(size, 'x'));
      const auto header = parse_header(header_of(frame), kMostFrameBytes);
      REQUIRE(header);
      CHECK(static_cast<int>(header->type) == type);
      CHECK(header->body_bytes == size);
      CHECK(frame.size() == kHeaderBytes + size);
    }
  }
}

TEST_CASE("a frame of no type that we know is refused") {
  for (int type = 0; type < 256; ++type) {
    const bool known = type >= 1 && type <= 13;
    CHECK(parse_header(header_of(1, type), kMostFrameBytes).has_value() == known);
  }
}

TEST_CASE("a frame without even a type, or longer than allowed, is refused") {
  CHECK_FALSE(parse_header(header_of(0, 1), kMostFrameBytes));
  for (const std::size_t most : {kMostUnknownBytes, kMostFrameBytes}) {
    const auto length = static_cast<std::uint32_t>(most);
    CHECK(parse_header(header_of(length, 1), most));
    CHECK_FALSE(parse_header(header_of(length + 1, 1), most));
    CHECK_FALSE(parse_header(header_of(UINT32_MAX, 1), most));
    CHECK_FALSE(parse_header(header_of(0x80000000, 1), most));
  }
}

TEST_CASE("a header with any bit flipped is refused, or within the limits") {
  const std::string frame = frame_of(FrameType::kShip, std::string(300, 'x'));
  for (std::size_t bit = 0; bit < kHeaderBytes * 8; ++bit) {
    auto bytes = header_of(frame);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto header = parse_header(bytes, kMostUnknownBytes);
    if (header) CHECK(header->body_bytes < kMostUnknownBytes);
  }
}
