#include "collector/wire/message.h"

#include <doctest/doctest.h>

#include "collector/wire/frame.h"
#include "common/bytes.h"
#include "tests/collector/segments.h"
#include "tests/collector/wire/frame_fuzz_input.h"
#include "tests/collector/wire/some_shipment.h"
#include "tests/common/segment_bytes.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr std::int64_t kLeast = INT64_MIN, kMost = INT64_MAX;

/// Whatever others make of a body: it comes back as it is; each of its beginnings, and itself with
/// something behind it, is refused; what a flipped bit turns it into is refused or comes back too.
template <typename Value>
void check_body(const Value& value, std::optional<Value> (*parse)(std::string_view)) {
  const std::string body = body_of(value);
  const auto again = parse(body);
  REQUIRE(again);
  CHECK(body_of(*again) == body);
  for (std::size_t size = 0; size < body.size(); ++size) CHECK_FALSE(parse(body.substr(0, size)));
  CHECK_FALSE(parse(body + '\0'));
  for (std::size_t bit = 0; bit < body.size() * 8; ++bit) {
    std::string flipped = body;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto other = parse(flipped);
    if (!other) continue;
    const auto same = parse(body_of(*other));
    REQUIRE(same);
    CHECK(body_of(*same) == body_of(*other));
  }
}

Hello some_hello() {
  return {std::string(kNonceBytes, 'a'), std::string(kNonceBytes, '\0'), "n1", "0123abcd", true};
}

std::vector<RunName> names(std::size_t count) {
  std::vector<RunName> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back({"c1", "batch", "n1", static_cast<std::int64_t>(i), 0, kMost});
  }
  return all;
}

Shipment some_shipment() {
  Shipment shipment;
  shipment.change = 42;
  shipment.facts = {"n1", "0123abcd", "17", std::nullopt};
  shipment.runs = segment({{"cluster", {"c1", "c1"}}, {"step", {"0", "batch"}}});
  shipment.raw.push_back({"value", segment({{"run", {1, 0}}, {"name", {"a", "b"}}})});
  shipment.raw.push_back({"notice", segment({{"run", {Cell()}}, {"code", {"limit"}}})});
  shipment.sealed.push_back({1, 2, kMost, std::string("\0data", 5)});
  shipment.sealed.push_back({0, 0, -1, ""});
  return shipment;
}

std::string must_body(const Shipment& shipment) {
  auto body = body_of(ShipHead{7, {}}, shipment);
  REQUIRE_MESSAGE(body, (body ? "" : body.error()));
  std::string_view rest = *body;
  REQUIRE(parse_ship_head(rest));
  return std::string(rest);
}

std::string error_of(std::string_view body) {
  const auto shipment = parse_shipment(body);
  return shipment ? "" : shipment.error();
}

}  // namespace

TEST_CASE("a challenge, cut, longer or altered, is one or none") {
  const Challenge challenge{300, std::string("0123456789abcde\0", kNonceBytes)};
  check_body(challenge, &parse_challenge);
  const auto again = parse_challenge(body_of(challenge));
  CHECK(again->version == 300);
  CHECK(again->nonce == challenge.nonce);
  CHECK_FALSE(parse_challenge("HTTP/1.1 400 Bad Request\r\n\r\n"));
  CHECK_FALSE(parse_challenge("SPHASE" + varint(std::uint64_t{1} << 32) + std::string(16, 'x')));
}

TEST_CASE("a Hello, cut, longer or altered, is one or none") {
  check_body(some_hello(), &parse_hello);
  const auto again = parse_hello(body_of(some_hello()));
  CHECK(again->nonce == some_hello().nonce);
  CHECK(again->own_nonce == some_hello().own_nonce);
  CHECK(again->node == "n1");
  CHECK(again->file_id == "0123abcd");
  CHECK(again->wants_advice);
}

TEST_CASE("a Hello has the collector sign a nonce, and nothing else") {
  for (const std::size_t size : {std::size_t{0}, kNonceBytes - 1, kNonceBytes + 1, 1000ul}) {
    Hello hello = some_hello();
    hello.own_nonce.assign(size, 'x');
    CHECK_FALSE(parse_hello(body_of(hello)));
    hello = some_hello();
    hello.nonce.assign(size, 'x');
    CHECK_FALSE(parse_hello(body_of(hello)));
  }
}

TEST_CASE("a name of more than 1 kB is refused") {
  Hello hello = some_hello();
  hello.node.assign(1024, 'x');
  CHECK(parse_hello(body_of(hello)));
  hello.node += 'x';
  CHECK_FALSE(parse_hello(body_of(hello)));
  auto asked = names(1);
  asked[0].step.assign(1025, 'x');
  CHECK_FALSE(parse_ask(body_of(asked)));
}

TEST_CASE("a welcome, cut, longer or altered, is one or none") {
  for (const std::int64_t change : {std::int64_t{0}, std::int64_t{-1}, kLeast, kMost}) {
    check_body(Welcome{change, "MUNGE:abc:"}, &parse_welcome);
    CHECK(parse_welcome(body_of(Welcome{change, "x"}))->change == change);
  }
  CHECK_FALSE(parse_welcome(body_of(Welcome{1, std::string(kMostUnknownBytes + 1, 'x')})));
}

TEST_CASE("times of clocks, cut, longer or altered, are some or none") {
  check_body(ClockTimes{1'700'000'000'000'000'000, kLeast, kMost}, &parse_clock);
  const auto again = parse_clock(body_of(ClockTimes{1, -2, 3}));
  CHECK(again->sent_ns == 1);
  CHECK(again->came_ns == -2);
  CHECK(again->answered_ns == 3);
}

TEST_CASE("a question about runs, cut, longer or altered, is one or none") {
  check_body(names(0), &parse_ask);
  check_body(names(3), &parse_ask);
  const std::vector<RunName> asked = {{"c", "0", "n", 5, 6, 7}, {"", "", "", kLeast, -1, kMost}};
  CHECK(parse_ask(body_of(asked)) == asked);
}

TEST_CASE("more runs than may be asked for at once are refused") {
  CHECK(parse_ask(body_of(names(kMostAsked))));
  CHECK_FALSE(parse_ask(body_of(names(kMostAsked + 1))));
  CHECK_FALSE(parse_ask(varint(kMost) + body_of(names(1)).substr(1)));
  CHECK_FALSE(parse_seen(body_of(std::vector<RunSeen>(kMostAsked + 1))));
  CHECK_FALSE(parse_seen(varint(UINT64_MAX)));
}

TEST_CASE("what is known of runs, cut, longer or altered, is that or nothing") {
  const std::vector<RunSeen> all = {
      {}, {true, kMost, {}, {-1, 0, kMost}}, {true, 7, kLeast, {1, 2, 3}}};
  check_body(all, &parse_seen);
  CHECK(parse_seen(body_of(all)) == all);
  check_body(std::vector<RunSeen>(), &parse_seen);
}

TEST_CASE("the head of a shipment is taken from its front, and the rest stays") {
  for (const auto& clock : {std::optional<ClockOffset>(), std::optional(ClockOffset{-5, 1000})}) {
    const std::string whole = body_of(ShipHead{300, clock}) + "rest";
    std::string_view body = whole;
    const auto head = parse_ship_head(body);
    REQUIRE(head);
    CHECK(head->number == 300);
    REQUIRE(head->clock.has_value() == clock.has_value());
    if (clock) CHECK(head->clock->offset_ns == -5);
    if (clock) CHECK(head->clock->band_ns == 1000);
    CHECK(body == "rest");
  }
}

TEST_CASE("a head that is cut is refused, and nothing is taken") {
  const std::string whole = body_of(ShipHead{UINT64_MAX, ClockOffset{1 << 30, 1 << 20}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string_view body = std::string_view(whole).substr(0, size);
    CHECK_FALSE(parse_ship_head(body));
    CHECK(body.size() == size);
  }
}

TEST_CASE("a clock that is off by centuries is refused") {
  for (const ClockOffset& clock :
       {ClockOffset{kLeast, 1}, ClockOffset{kMost, 1}, ClockOffset{0, kMost}, ClockOffset{0, -1}}) {
    const std::string whole = body_of(ShipHead{1, clock});
    std::string_view body = whole;
    CHECK_FALSE(parse_ship_head(body));
  }
}

TEST_CASE("a shipment comes back as it was") {
  const Shipment shipment = some_shipment();
  const auto again = parse_shipment(must_body(shipment));
  REQUIRE_MESSAGE(again, (again ? "" : again.error()));
  CHECK(again->change == 42);
  CHECK(again->facts == shipment.facts);
  CHECK(dump(again->runs) == dump(shipment.runs));
  REQUIRE(again->raw.size() == 2);
  CHECK(again->raw[0].table == "value");
  CHECK(dump(again->raw[0].rows) == dump(shipment.raw[0].rows));
  CHECK(dump(again->raw[1].rows) == "run: NULL\ncode: 'limit'\n");
  REQUIRE(again->sealed.size() == 2);
  CHECK(again->sealed[0].run == 1);
  CHECK(again->sealed[0].table == 2);
  CHECK(again->sealed[0].sealed_ns == kMost);
  CHECK(again->sealed[0].data == std::string("\0data", 5));
  CHECK(again->sealed[1].sealed_ns == -1);
  CHECK(must_body(*again) == must_body(shipment));
}

TEST_CASE("a shipment of nothing comes back") {
  const auto again = parse_shipment(must_body({}));
  REQUIRE(again);
  CHECK(again->empty());
}

TEST_CASE("a shipment that is cut, or has something behind it, is an error of one sentence") {
  const std::string body = must_body(some_shipment());
  for (std::size_t size = 0; size < body.size(); ++size) {
    const std::string error = error_of(body.substr(0, size));
    CHECK(error != "");
    CHECK(error.find('\n') == std::string::npos);
  }
  CHECK(error_of(body + '\0') == "it is cut, or longer than it says");
}

TEST_CASE("a shipment with any bit flipped is an error, or one that comes back") {
  const std::string body = must_body(some_shipment());
  for (std::size_t bit = 0; bit < body.size() * 8; ++bit) {
    std::string flipped = body;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto shipment = parse_shipment(flipped);
    if (shipment) CHECK(error_of(must_body(*shipment)) == "");
  }
}

TEST_CASE("rows of a table that no node writes are refused") {
  for (const char* table : {"run", "job", "shipper", "segment", "meta", "sqlite_schema", "",
                            "value; DROP TABLE run", "VALUE", "phase_path"}) {
    Shipment shipment = some_shipment();
    shipment.raw[0].table = table;
    CHECK(error_of(must_body(shipment)) == "rows of a table that no node writes");
  }
  for (const char* table : {"task", "sample", "phase", "value", "attribute", "counter", "notice"}) {
    Shipment shipment = some_shipment();
    shipment.raw[0].table = table;
    CHECK(error_of(must_body(shipment)) == "");
  }
}

TEST_CASE("a shipment that holds more than one may is refused before it is whole in memory") {
  Shipment shipment = some_shipment();
  shipment.raw[0].rows = segment_of_nulls(kShipmentRows + 1);
  CHECK(error_of(must_body(shipment)) == "rows: more than a shipment holds");
  shipment.raw[0].rows = segment_of_nulls(kShipmentRows);
  CHECK(error_of(must_body(shipment)) == "");
  shipment.runs = segment_of_nulls(kShipmentRuns + 1);
  CHECK(error_of(must_body(shipment)) == "runs: more than a shipment holds");
  shipment = some_shipment();
  shipment.raw.resize(9, shipment.raw[0]);
  CHECK(error_of(must_body(shipment)) != "");
  shipment.raw.resize(8);
  CHECK(error_of(must_body(shipment)) == "");
  shipment.sealed.resize(kShipmentSegments + 1);
  CHECK(error_of(must_body(shipment)) != "");
  shipment.sealed.resize(kShipmentSegments);
  CHECK(error_of(must_body(shipment)) == "");
}

TEST_CASE("places and lengths that lie about the shipment are refused") {
  Shipment shipment = some_shipment();
  shipment.sealed[0].table = 3;
  CHECK(error_of(must_body(shipment)) != "");
  shipment.sealed[0].table = UINT32_MAX;
  CHECK(error_of(must_body(shipment)) != "");
  shipment = some_shipment();
  shipment.sealed[0].run = UINT32_MAX;
  CHECK(error_of(must_body(shipment)) != "");
  const std::string front = varint(0) + varint(0) + varint(0) + std::string(2, '\0');
  CHECK(error_of(front + varint(UINT64_MAX)) == "runs: it is cut");
  CHECK(error_of(front + varint((8 << 20) + 1) + std::string(100, 'x')) == "runs: it is cut");
  const std::string runs = name(*encode_segment({}));
  CHECK(error_of(front + runs + varint(0) + varint(0)) == "");
  CHECK(error_of(front + runs + varint(9)) == "it is cut, or longer than it says");
  CHECK(error_of(front + runs + varint(0) + varint(UINT64_MAX)) != "");
  CHECK(error_of(front + name("no segment") + varint(0) + varint(0)).rfind("runs: ", 0) == 0);
}

TEST_CASE("a number alone comes back, and nothing beside it") {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{127}, UINT64_MAX}) {
    CHECK(parse_stored(stored_body(number)) == number);
    CHECK_FALSE(parse_stored(stored_body(number) + "x"));
  }
  CHECK_FALSE(parse_stored(""));
  CHECK_FALSE(parse_stored(std::string(11, '\xff')));
}

TEST_CASE("a part of the advice table comes back, the last one empty too") {
  const auto part = parse_advice(body_of(AdvicePart{false, std::string("a\0b", 3)}));
  REQUIRE(part);
  CHECK_FALSE(part->last);
  CHECK(part->bytes == std::string("a\0b", 3));
  CHECK(parse_advice(body_of(AdvicePart{true, ""}))->last);
  CHECK_FALSE(parse_advice(""));
  CHECK(parse_advice(std::string(kAdvicePartBytes + 1, '\0')));
  CHECK_FALSE(parse_advice(std::string(kAdvicePartBytes + 2, '\0')));
}

TEST_CASE("what the fuzzer of frames begins with is a shipment") {
  const auto shipment = parse_shipment(body_of_input(fuzz_input(some_real_shipment())));
  REQUIRE_MESSAGE(shipment, (shipment ? "" : shipment.error()));
  CHECK(dump(shipment->runs) == dump(some_real_shipment().runs));
  CHECK(shipment->raw.size() == some_real_shipment().raw.size());
  CHECK(shipment->sealed.size() == some_real_shipment().sealed.size());
}
