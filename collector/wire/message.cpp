#include "collector/wire/message.h"

#include "collector/wire/frame.h"
#include "common/bytes.h"

namespace sphase {
namespace {

constexpr std::size_t kMostNameBytes = 1024;
/// Of raw rows: one part per table, and one more for notices of no run.
constexpr std::size_t kMostRaw = 8;
constexpr std::size_t kMostPartBytes = 8 << 20;
/// 73 years. What is further off is no clock's; sums of two of these have room.
constexpr std::int64_t kMostOffsetNs = std::int64_t{1} << 61;

void put_maybe(std::string& out, const std::optional<std::int64_t>& value) {
  out += static_cast<char>(value ? 1 : 0);
  if (value) put_number(out, *value);
}

std::optional<std::int64_t> take_maybe(Bytes& bytes) {
  const std::uint8_t there = bytes.byte();
  if (there > 1) bytes.fail();
  return there == 1 ? std::optional(bytes.number()) : std::nullopt;
}

void put_maybe(std::string& out, const std::optional<std::string>& value) {
  out += static_cast<char>(value ? 1 : 0);
  if (value) put_text(out, *value);
}

std::optional<std::string> take_maybe_text(Bytes& bytes) {
  const std::uint8_t there = bytes.byte();
  if (there > 1) bytes.fail();
  return there == 1 ? std::optional(std::string(bytes.text(kMostNameBytes))) : std::nullopt;
}

std::string take_text(Bytes& bytes) { return std::string(bytes.text(kMostNameBytes)); }

/// What was taken, if all of it was there and nothing is left.
template <typename Value>
std::optional<Value> whole(const Bytes& bytes, Value value) {
  if (bytes.failed() || !bytes.empty()) return std::nullopt;
  return value;
}

RunName take_name(Bytes& bytes) {
  RunName name;
  name.cluster = take_text(bytes);
  name.step = take_text(bytes);
  name.node = take_text(bytes);
  name.job_id = bytes.number();
  name.restart_count = bytes.number();
  name.start_ns = bytes.number();
  return name;
}

RunSeen take_seen(Bytes& bytes) {
  RunSeen seen;
  seen.known = bytes.byte() == 1;
  seen.last_ns = bytes.number();
  seen.end_ns = take_maybe(bytes);
  for (auto& sealed_ns : seen.sealed_ns) sealed_ns = bytes.number();
  return seen;
}

Status put_segment(std::string& out, const Segment& segment) {
  auto bytes = encode_segment(segment);
  if (!bytes) return Error{bytes.error()};
  put_text(out, *bytes);
  return Done{};
}

/// One segment may take 100 MB; with `most` rows (kShipmentRows) it takes a tenth of that.
Result<Segment> take_segment(Bytes& bytes, std::size_t most) {
  const std::string_view encoded = bytes.text(kMostPartBytes);
  if (bytes.failed()) return Error{"it is cut"};
  auto segment = decode_segment(encoded);
  if (segment && segment->rows() > most) return Error{"more than a shipment holds"};
  return segment;
}

Status take_raw(Bytes& bytes, Shipment& shipment) {
  const std::size_t tables = bytes.count(kMostRaw);
  for (std::size_t i = 0; i < tables; ++i) {
    RawRows raw;
    raw.table = take_text(bytes);
    auto rows = take_segment(bytes, kShipmentRows);
    if (!rows) return Error{rows.error()};
    raw.rows = std::move(*rows);
    shipment.raw.push_back(std::move(raw));
  }
  return Done{};
}

void take_sealed(Bytes& bytes, Shipment& shipment) {
  const std::size_t count = bytes.count(kShipmentSegments);
  for (std::size_t i = 0; i < count && !bytes.failed(); ++i) {
    SealedRows sealed;
    sealed.run = static_cast<std::uint32_t>(bytes.count(kShipmentRuns));
    sealed.table = static_cast<std::uint32_t>(bytes.count(kSealedTables.size() - 1));
    sealed.sealed_ns = bytes.number();
    sealed.data = std::string(bytes.text(kMostPartBytes));
    shipment.sealed.push_back(std::move(sealed));
  }
}

/// Rows of other tables would go where a node has nothing to say.
bool is_child(std::string_view table) {
  return table == "task" || table == "sample" || table == "phase" || table == "value" ||
         table == "attribute" || table == "counter" || table == "notice";
}

}  // namespace

std::string body_of(const Challenge& challenge) {
  std::string body = "SPHASE";
  put_varint(body, challenge.version);
  return body + challenge.nonce;
}

std::optional<Challenge> parse_challenge(std::string_view body) {
  Bytes bytes(body);
  if (bytes.take(6) != "SPHASE") return std::nullopt;
  Challenge challenge;
  challenge.version = static_cast<std::uint32_t>(bytes.count(UINT32_MAX));
  challenge.nonce = std::string(bytes.take(kNonceBytes));
  return whole(bytes, std::move(challenge));
}

std::string body_of(const Hello& hello) {
  std::string body;
  put_text(body, hello.nonce);
  put_text(body, hello.own_nonce);
  put_text(body, hello.node);
  put_text(body, hello.file_id);
  body += static_cast<char>(hello.wants_advice ? 1 : 0);
  return body;
}

std::optional<Hello> parse_hello(std::string_view body) {
  Bytes bytes(body);
  Hello hello;
  hello.nonce = take_text(bytes);
  hello.own_nonce = take_text(bytes);
  hello.node = take_text(bytes);
  hello.file_id = take_text(bytes);
  hello.wants_advice = bytes.byte() == 1;
  // The collector signs own_nonce with its own name: nobody is to choose what else that may mean.
  if (hello.nonce.size() != kNonceBytes || hello.own_nonce.size() != kNonceBytes) bytes.fail();
  return whole(bytes, std::move(hello));
}

std::string body_of(const Welcome& welcome) {
  std::string body;
  put_number(body, welcome.change);
  put_text(body, welcome.credential);
  return body;
}

std::optional<Welcome> parse_welcome(std::string_view body) {
  Bytes bytes(body);
  Welcome welcome;
  welcome.change = bytes.number();
  welcome.credential = std::string(bytes.text(kMostUnknownBytes));
  return whole(bytes, std::move(welcome));
}

std::string body_of(const ClockTimes& times) {
  std::string body;
  for (const auto ns : {times.sent_ns, times.came_ns, times.answered_ns}) put_number(body, ns);
  return body;
}

std::optional<ClockTimes> parse_clock(std::string_view body) {
  Bytes bytes(body);
  ClockTimes times;
  for (auto* ns : {&times.sent_ns, &times.came_ns, &times.answered_ns}) *ns = bytes.number();
  return whole(bytes, times);
}

std::string body_of(const std::vector<RunName>& names) {
  std::string body;
  put_varint(body, names.size());
  for (const RunName& name : names) {
    put_text(body, name.cluster);
    put_text(body, name.step);
    put_text(body, name.node);
    put_number(body, name.job_id);
    put_number(body, name.restart_count);
    put_number(body, name.start_ns);
  }
  return body;
}

std::optional<std::vector<RunName>> parse_ask(std::string_view body) {
  Bytes bytes(body);
  std::vector<RunName> names;
  const std::size_t count = bytes.count(kMostAsked);
  for (std::size_t i = 0; i < count && !bytes.failed(); ++i) names.push_back(take_name(bytes));
  return whole(bytes, std::move(names));
}

std::string body_of(const std::vector<RunSeen>& all) {
  std::string body;
  put_varint(body, all.size());
  for (const RunSeen& seen : all) {
    body += static_cast<char>(seen.known ? 1 : 0);
    put_number(body, seen.last_ns);
    put_maybe(body, seen.end_ns);
    for (const auto sealed_ns : seen.sealed_ns) put_number(body, sealed_ns);
  }
  return body;
}

std::optional<std::vector<RunSeen>> parse_seen(std::string_view body) {
  Bytes bytes(body);
  std::vector<RunSeen> all;
  const std::size_t count = bytes.count(kMostAsked);
  for (std::size_t i = 0; i < count && !bytes.failed(); ++i) all.push_back(take_seen(bytes));
  return whole(bytes, std::move(all));
}

std::string body_of(const ShipHead& head) {
  std::string body;
  put_varint(body, head.number);
  body += static_cast<char>(head.clock ? 1 : 0);
  if (!head.clock) return body;
  put_number(body, head.clock->offset_ns);
  put_number(body, head.clock->band_ns);
  return body;
}

std::optional<ShipHead> parse_ship_head(std::string_view& body) {
  Bytes bytes(body);
  ShipHead head;
  head.number = bytes.varint();
  if (bytes.byte() == 1) {
    head.clock.emplace();
    head.clock->offset_ns = bytes.number();
    head.clock->band_ns = bytes.number();
    const bool sane = head.clock->offset_ns >= -kMostOffsetNs &&
                      head.clock->offset_ns <= kMostOffsetNs && head.clock->band_ns >= 0 &&
                      head.clock->band_ns <= kMostOffsetNs;
    if (!sane) bytes.fail();
  }
  if (bytes.failed()) return std::nullopt;
  body.remove_prefix(body.size() - bytes.left());
  return head;
}

Result<std::string> body_of(const ShipHead& head, const Shipment& shipment) {
  std::string body = body_of(head);
  put_number(body, shipment.change);
  put_text(body, shipment.facts.node);
  put_text(body, shipment.facts.id);
  put_maybe(body, shipment.facts.rows_deleted);
  put_maybe(body, shipment.facts.damaged);
  if (auto put = put_segment(body, shipment.runs); !put) return Error{put.error()};
  put_varint(body, shipment.raw.size());
  for (const RawRows& raw : shipment.raw) {
    put_text(body, raw.table);
    if (auto put = put_segment(body, raw.rows); !put) return Error{put.error()};
  }
  put_varint(body, shipment.sealed.size());
  for (const SealedRows& sealed : shipment.sealed) {
    put_varint(body, sealed.run);
    put_varint(body, sealed.table);
    put_number(body, sealed.sealed_ns);
    put_text(body, sealed.data);
  }
  return body;
}

Result<Shipment> parse_shipment(std::string_view body) {
  Bytes bytes(body);
  Shipment shipment;
  shipment.change = bytes.number();
  shipment.facts.node = take_text(bytes);
  shipment.facts.id = take_text(bytes);
  shipment.facts.rows_deleted = take_maybe_text(bytes);
  shipment.facts.damaged = take_maybe_text(bytes);
  auto runs = take_segment(bytes, kShipmentRuns);
  if (!runs) return Error{"runs: " + runs.error()};
  shipment.runs = std::move(*runs);
  if (auto raw = take_raw(bytes, shipment); !raw) return Error{"rows: " + raw.error()};
  for (const RawRows& raw : shipment.raw) {
    if (!is_child(raw.table)) return Error{"rows of a table that no node writes"};
  }
  take_sealed(bytes, shipment);
  if (bytes.failed() || !bytes.empty()) return Error{"it is cut, or longer than it says"};
  return shipment;
}

std::string stored_body(std::uint64_t number) {
  std::string body;
  put_varint(body, number);
  return body;
}

std::optional<std::uint64_t> parse_stored(std::string_view body) {
  Bytes bytes(body);
  const std::uint64_t number = bytes.varint();
  return whole(bytes, number);
}

std::string body_of(const AdvicePart& part) {
  return std::string(1, static_cast<char>(part.last ? 1 : 0)) + part.bytes;
}

std::optional<AdvicePart> parse_advice(std::string_view body) {
  if (body.empty() || body.size() > kAdvicePartBytes + 1) return std::nullopt;
  return AdvicePart{body.front() == 1, std::string(body.substr(1))};
}

}  // namespace sphase
