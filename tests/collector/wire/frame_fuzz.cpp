// Any bytes as a frame: nothing that reads one crashes, leaks or takes more memory than it says;
// what is accepted comes back the same when it is written again; and any shipment may go into a
// cluster.db. An entry point of libFuzzer (./dev fuzz frame). The first byte says as what the
// others are read.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "collector/ingest/store.h"
#include "collector/wire/frame.h"
#include "collector/wire/message.h"
#include "common/schema.h"
#include "tests/collector/wire/frame_fuzz_input.h"
#include "tests/collector/wire/some_shipment.h"

namespace {

using namespace sphase;

void must(bool right) {
  if (!right) std::abort();
}

template <typename Value>
void check_again(const std::optional<Value>& value,
                 std::optional<Value> (*parse)(std::string_view)) {
  if (!value) return;
  const auto again = parse(body_of(*value));
  must(again && body_of(*again) == body_of(*value));
}

template <typename Value>
void check_parse(std::string_view body, std::optional<Value> (*parse)(std::string_view)) {
  check_again(parse(body), parse);
}

void check_header(std::string_view bytes) {
  std::array<char, kHeaderBytes> header{};
  if (bytes.size() < header.size()) return;
  std::copy_n(bytes.begin(), header.size(), header.begin());
  const auto parsed = parse_header(header, kMostUnknownBytes);
  if (!parsed) return;
  must(parsed->body_bytes < kMostUnknownBytes);
  const std::string frame = frame_of(parsed->type, std::string(parsed->body_bytes, 'x'));
  must(std::equal(header.begin(), header.end(), frame.begin()));
}

void check_head(std::string_view body) {
  const auto head = parse_ship_head(body);
  if (!head) return;
  const std::string bytes = body_of(*head);
  std::string_view rest = bytes;
  const auto again = parse_ship_head(rest);
  must(again && rest.empty() && body_of(*again) == bytes);
}

void check_stored(std::string_view body) {
  const auto number = parse_stored(body);
  if (number) must(parse_stored(stored_body(*number)) == number);
}

/// A cluster.db in memory, in which the seed's shipment is stored.
class Cluster {
 public:
  Cluster() : db_(Database::open(":memory:", Database::Mode::kCreate)), store_(must_open()) {
    must(store_.put(testing::some_real_shipment()).operator bool());
  }
  /// Stores it and takes that back.
  void put(const Shipment& shipment) {
    auto transaction = Transaction::begin(*db_);
    must(transaction.operator bool());
    (void)store_.put(shipment).operator bool();
    for (std::size_t row = 0; row < shipment.runs.rows() && row < 4; ++row) {
      if (const auto name = run_name(shipment.runs, row)) (void)store_.seen(*name).operator bool();
    }
    store_.forget();
  }

 private:
  Database& must_open() {
    must(db_ && db_->exec(std::string(kClusterSchema)) && db_->exec("PRAGMA foreign_keys = ON"));
    return *db_;
  }
  Result<Database> db_;
  Store store_;
};

void check_shipment(std::string_view body) {
  static Cluster cluster;
  const auto shipment = parse_shipment(body);
  if (!shipment) return;
  cluster.put(*shipment);
  const auto whole = body_of(ShipHead{1, {}}, *shipment);
  if (!whole) return;  // as good as empty names may make a segment too large
  std::string_view rest = *whole;
  must(parse_ship_head(rest).has_value());
  const auto again = parse_shipment(rest);
  must(again.operator bool());
  must(*body_of(ShipHead{1, {}}, *again) == *whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 0:
      check_header(body);
      break;
    case 1:
      check_parse(body, &parse_challenge);
      break;
    case 2:
      check_parse(body, &parse_hello);
      break;
    case 3:
      check_parse(body, &parse_welcome);
      break;
    case 4:
      check_parse(body, &parse_clock);
      break;
    case 5:
      check_parse(body, &parse_ask);
      break;
    case 6:
      check_parse(body, &parse_seen);
      break;
    case 7:
      check_head(body);
      break;
    case 8:
      check_parse(body, &parse_advice);
      break;
    case 9:
      check_stored(body);
      break;
    case 10:
      check_shipment(body);
      break;
    default:
      check_shipment(testing::body_of_input(body));
  }
  return 0;
}
