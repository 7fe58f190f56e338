#include "collector/wire/frame.h"

namespace sphase {

std::optional<FrameHeader> parse_header(const std::array<char, kHeaderBytes>& bytes,
                                        std::size_t most) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  const auto type = static_cast<std::uint8_t>(bytes[4]);
  if (length == 0 || length > most) return std::nullopt;
  if (type < static_cast<std::uint8_t>(FrameType::kChallenge) ||
      type > static_cast<std::uint8_t>(FrameType::kAnswer)) {
    return std::nullopt;
  }
  return FrameHeader{static_cast<FrameType>(type), length - 1};
}

std::string frame_of(FrameType type, std::string_view body) {
  const std::size_t length = body.size() + 1;
  std::string frame;
  frame.reserve(4 + length);
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(length >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += body;
  return frame;
}

}  // namespace sphase
