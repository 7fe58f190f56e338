// Frames: how messages between nodes and the collector lie on a connection.
//
//   frame = length type body
//   length  4 bytes, most significant first: of type and body together
//   type    1 byte: FrameType
//
// What each body holds: message.h. Before a peer is known it may send frames of kMostUnknownBytes
// alone, afterwards of kMostFrameBytes; a longer one ends the connection before any of it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sphase {

inline constexpr std::uint32_t kProtocolVersion = 1;

enum class FrameType : std::uint8_t {
  kChallenge = 1,  // collector: who are you?
  kHello,          // peer: its MUNGE credential, and what it wants
  kWelcome,        // collector: what it has of the peer
  kRefused,        // either: why this is the last frame
  kClock,          // peer: its time; collector: that, and its own
  kAsk,            // peer: what do you have of these runs?
  kSeen,           // collector: the answer
  kShip,           // peer: rows
  kStored,         // collector: they are on its disk
  kAlive,          // peer: nothing new
  kAdvice,         // collector: a part of the advice table
  kQuestion,       // a user: a command of `sphase` (collector/answer/answer.h)
  kAnswer,         // collector: its exit code (a byte) and text
};

inline constexpr std::size_t kHeaderBytes = 5;
inline constexpr std::size_t kMostUnknownBytes = 8 << 10;
inline constexpr std::size_t kMostFrameBytes = 24 << 20;

struct FrameHeader {
  FrameType type = FrameType::kRefused;
  std::size_t body_bytes = 0;
};

/// nullopt: no type that we know, or longer than `most` bytes.
std::optional<FrameHeader> parse_header(const std::array<char, kHeaderBytes>& bytes,
                                        std::size_t most);

/// A whole frame.
std::string frame_of(FrameType type, std::string_view body);

}  // namespace sphase
