// The bodies of frames. Every parse function takes any bytes: nullopt for what is not such a body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/ingest/shipment.h"
#include "common/result.h"

namespace sphase {

inline constexpr std::size_t kNonceBytes = 16;

struct Challenge {
  std::uint32_t version = 0;
  std::string nonce;  // kNonceBytes, never used twice
};
std::string body_of(const Challenge& challenge);
std::optional<Challenge> parse_challenge(std::string_view body);

/// What a shipper says of itself; of a user who asks, node and file are "". It is the payload of its MUNGE credential, so that the credential
/// is of no use for anything else; `nonce` is the challenge's, `own_nonce` one for the answer.
struct Hello {
  std::string nonce, own_nonce, node, file_id;
  bool wants_advice = false;
};
std::string body_of(const Hello& hello);
std::optional<Hello> parse_hello(std::string_view body);

/// `credential` is the collector's own, around Hello::own_nonce: whoever only listens at its
/// address gets no rows, and can send no advice.
struct Welcome {
  std::int64_t change = 0;  // everything of this file up to here is stored
  std::string credential;
};
std::string body_of(const Welcome& welcome);
std::optional<Welcome> parse_welcome(std::string_view body);

/// CLOCK_REALTIME in ns. The peer sends `sent`; the collector adds when that came, and when it
/// answers (RFC 5905, section 8: T1, T2, T3).
struct ClockTimes {
  std::int64_t sent_ns = 0, came_ns = 0, answered_ns = 0;
};
std::string body_of(const ClockTimes& times);
std::optional<ClockTimes> parse_clock(std::string_view body);

/// The peer's clock minus the collector's, and how far from the truth that may be.
struct ClockOffset {
  std::int64_t offset_ns = 0, band_ns = 0;
};

inline constexpr std::size_t kMostAsked = 256;
std::string body_of(const std::vector<RunName>& names);
std::optional<std::vector<RunName>> parse_ask(std::string_view body);
std::string body_of(const std::vector<RunSeen>& seen);
std::optional<std::vector<RunSeen>> parse_seen(std::string_view body);

/// Of kShip and kAlive: which one it is, and what the peer last found of its clock.
struct ShipHead {
  std::uint64_t number = 0;  // counted from 1 on a connection; its kStored has the same
  std::optional<ClockOffset> clock;
};
/// The head, then the shipment: raw rows as segments too, everything compressed.
std::string body_of(const ShipHead& head);
Result<std::string> body_of(const ShipHead& head, const Shipment& shipment);
std::optional<ShipHead> parse_ship_head(std::string_view& body);  // takes it from the front
/// Errors: one sentence for what is cut, altered or too large. Cost: 0.1 µs per row.
Result<Shipment> parse_shipment(std::string_view body);

std::string stored_body(std::uint64_t number);  // kStored
std::optional<std::uint64_t> parse_stored(std::string_view body);

/// The advice table comes in parts of at most kAdvicePartBytes; the last one may be empty.
struct AdvicePart {
  bool last = false;
  std::string bytes;
};
inline constexpr std::size_t kAdvicePartBytes = 256 << 10;
std::string body_of(const AdvicePart& part);
std::optional<AdvicePart> parse_advice(std::string_view body);

}  // namespace sphase
