#include "common/segment.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

#include "tests/common/segment_bytes.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

std::string must_encode(const Segment& segment) {
  auto bytes = encode_segment(segment);
  REQUIRE_MESSAGE(bytes, (bytes ? "" : bytes.error()));
  return *bytes;
}

Segment must_decode(std::string_view bytes) {
  auto segment = decode_segment(bytes);
  REQUIRE_MESSAGE(segment, (segment ? "" : segment.error()));
  return std::move(*segment);
}

std::string error_of(std::string_view bytes) {
  const auto segment = decode_segment(bytes);
  return segment ? "" : segment.error();
}

std::string cell(const SegmentColumn& column, std::size_t row) {
  if (column.is_null(row)) return "NULL";
  switch (column.type()) {
    case SegmentColumn::Type::kInteger:
      return std::to_string(column.integer(row));
    case SegmentColumn::Type::kReal: {
      std::uint64_t bits = 0;
      const double value = column.real(row);
      std::memcpy(&bits, &value, sizeof(bits));
      return "bits " + std::to_string(bits);
    }
    case SegmentColumn::Type::kText:
      return "'" + column.text(row) + "'";
    case SegmentColumn::Type::kNull:
      break;
  }
  return "NULL";
}

/// Every value as text, one line per column.
std::string dump(const Segment& segment) {
  std::string out;
  for (const SegmentColumn& column : segment.columns) {
    out += column.name() + ":";
    for (std::size_t row = 0; row < segment.rows(); ++row) out += " " + cell(column, row);
    out += "\n";
  }
  return out;
}

void check_round_trip(const Segment& segment) {
  CHECK(dump(must_decode(must_encode(segment))) == dump(segment));
}

SegmentColumn integers(const std::string& name,
                       const std::vector<std::optional<std::int64_t>>& values) {
  SegmentColumn column(name);
  for (const auto& value : values) {
    if (value) {
      REQUIRE(column.add(*value));
    } else {
      column.add_null();
    }
  }
  return column;
}

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

Segment few_rows() {
  Segment segment;
  segment.columns.push_back(integers("time_ns", {1'000'000'007, 2'000'000'011, 3'000'000'002}));
  segment.columns.push_back(integers("bytes", {4096, std::nullopt, 0}));
  SegmentColumn kind("kind");
  for (const char* word : {"tick", "edge", "tick"}) REQUIRE(kind.add(std::string_view(word)));
  segment.columns.push_back(kind);
  return segment;
}

}  // namespace

TEST_CASE("rows of a segment come back as they were, with their names") {
  const Segment segment = must_decode(must_encode(few_rows()));
  CHECK(dump(segment) ==
        "time_ns: 1000000007 2000000011 3000000002\n"
        "bytes: 4096 NULL 0\n"
        "kind: 'tick' 'edge' 'tick'\n");
}

TEST_CASE("NULL stays NULL and 0 stays 0, wherever they stand in a segment") {
  Segment segment;
  segment.columns.push_back(integers("a", {std::nullopt, std::nullopt, std::nullopt}));
  segment.columns.push_back(integers("b", {std::nullopt, 0, std::nullopt}));
  segment.columns.push_back(integers("c", {0, std::nullopt, 7}));
  segment.columns.push_back(integers("d", {0, 0, 0}));
  check_round_trip(segment);
}

TEST_CASE("a segment without rows or without columns is one") {
  check_round_trip({});
  Segment segment;
  segment.columns.push_back(integers("a", {}));
  check_round_trip(segment);
}

TEST_CASE("the ends of 64 bits survive every difference") {
  Segment segment;
  segment.columns.push_back(integers("a", {kLeast, kMost, 0, kLeast, -1, kMost, kMost, kLeast}));
  segment.columns.push_back(integers("b", {kMost, kLeast, -1, 1, kLeast, 0, kLeast, kMost}));
  segment.columns.push_back(
      integers("c", {kLeast, kLeast, kLeast, kLeast, kLeast, kLeast, kLeast, kLeast}));
  segment.columns.push_back(integers("d", {0, kLeast, 0, kLeast, 0, kLeast, 0, kLeast}));
  check_round_trip(segment);
}

TEST_CASE("reals come back bit by bit") {
  Segment segment;
  SegmentColumn column("value");
  for (const double value : {0.0, -0.0, 0.1, -1e308, std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::infinity(), std::nan("7")}) {
    REQUIRE(column.add(value));
  }
  column.add_null();
  segment.columns.push_back(column);
  check_round_trip(segment);
}

TEST_CASE("any text comes back, also with NUL, and one that is empty is not NULL") {
  Segment segment;
  SegmentColumn column("path");
  REQUIRE(column.add(std::string_view("")));
  REQUIRE(column.add(std::string_view("a\0b", 3)));
  column.add_null();
  REQUIRE(column.add(std::string_view("\xff/Ünter")));
  for (int i = 0; i < 200; ++i) REQUIRE(column.add(std::string_view(std::to_string(i % 150))));
  segment.columns.push_back(column);
  check_round_trip(segment);
}

TEST_CASE("a column of mixed types is refused, and keeps what it has") {
  SegmentColumn column("a");
  CHECK(column.add(std::int64_t{1}));
  CHECK_FALSE(column.add(0.5));
  CHECK_FALSE(column.add(std::string_view("x")));
  column.add_null();
  CHECK(column.rows() == 2);
  CHECK(column.word_bytes() == 0);
}

TEST_CASE("random rows come back as they were") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto rows = random() % 300;
    Segment segment;
    for (std::uint64_t c = 0; c < random() % 8; ++c) {
      SegmentColumn column("c" + std::to_string(c));
      const std::uint64_t kind = random() % 3;
      const int shift = static_cast<int>(random() % 64);
      const std::uint64_t unit = random() % 2 == 0 ? 1 : 4096;
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t bits = (random() >> shift) * unit;
        bool added = true;
        if (random() % 5 == 0) {
          column.add_null();
        } else if (kind == 0) {
          added = column.add(static_cast<std::int64_t>(bits));
        } else if (kind == 1) {
          added = column.add(static_cast<double>(bits) / 3);
        } else {
          added = column.add(std::string_view(std::to_string(bits % 100)));
        }
        REQUIRE(added);
      }
      segment.columns.push_back(std::move(column));
    }
    check_round_trip(segment);
  }
}

TEST_CASE("rows at a steady rate take a few bytes each") {
  Segment segment;
  SegmentColumn time("time_ns"), memory("memory_bytes"), end("end_ns");
  for (std::int64_t i = 0; i < 1000; ++i) {
    REQUIRE(time.add(i * 1'000'000'000 + i % 7));
    REQUIRE(end.add(i * 1'000'000'000 + i % 7 + 5));
    REQUIRE(memory.add((1000 + i * i % 13) * 4096));
  }
  segment.columns = {time, end, memory};
  CHECK(must_encode(segment).size() < 3000);
  check_round_trip(segment);
}

TEST_CASE("more than a segment may hold is an error") {
  Segment rows;
  SegmentColumn column("a");
  for (std::size_t i = 0; i <= kMaxSegmentRows; ++i) column.add_null();
  rows.columns.push_back(column);
  CHECK(encode_segment(rows).error() == "too many rows for a segment");
  Segment columns;
  columns.columns.assign(kMaxSegmentColumns + 1, SegmentColumn("a"));
  CHECK(encode_segment(columns).error() == "too many columns for a segment");
  Segment uneven;
  uneven.columns.push_back(integers("a", {1}));
  uneven.columns.push_back(integers("b", {1, 2}));
  CHECK(encode_segment(uneven).error() == "columns of different lengths");
  Segment bytes;
  SegmentColumn words("a");
  REQUIRE(words.add(std::string_view(std::string(kMaxSegmentBytes, 'x'))));
  bytes.columns.push_back(words);
  CHECK(encode_segment(bytes).error() == "too many bytes for a segment");
}

TEST_CASE("a segment that is cut anywhere is an error") {
  const std::string bytes = must_encode(few_rows());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK(error_of(std::string_view(bytes).substr(0, size)) != "");
  }
}

TEST_CASE("a segment with any bit flipped is an error, or still the same rows") {
  const std::string good = must_encode(few_rows());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto segment = decode_segment(bytes);
    if (segment) CHECK(dump(*segment) == dump(few_rows()));
  }
}

TEST_CASE("a segment of another format is an error that names it") {
  std::string bytes = must_encode(few_rows());
  bytes[0] = 9;
  CHECK(error_of(bytes) == "its format is 9, this program knows 1");
  CHECK(error_of("") == "it is empty");
}

TEST_CASE("a segment that says it is huge is refused before anything is allocated for it") {
  CHECK(error_of(compressed(std::string(kMaxSegmentBytes + 1, 'x'))) ==
        "it says that it is too large");
}

TEST_CASE("content that lies about its counts is an error") {
  const std::string row = varint(1) + varint(1) + name("a");
  const std::string integer = row + "\1" + std::string(1, '\0');  // type, no NULLs
  const std::string plain = std::string(2, '\0') + varint(1);     // base, order, divisor
  REQUIRE(error_of(compressed(integer + plain + varint(2))) == "");
  const std::string wrong = "its content is not that of a segment";
  for (const std::string& content : {
           std::string(), varint(kMaxSegmentRows + 1) + varint(0),
           varint(1) + varint(kMaxSegmentColumns + 1), varint(std::uint64_t{1} << 63) + varint(1),
           std::string(11, '\xff'),                                   // no varint
           varint(1) + varint(1) + varint(200) + "a",                 // a name beyond the end
           row + "\4",                                                // an unknown type
           row + "\1" + "\2",                                         // neither NULLs nor none
           varint(9) + varint(1) + name("a") + "\1" + "\1" + "\1",    // half a bitmap
           integer + "\1" + std::string(1, '\0') + varint(1) + "\1",  // a base, with none before
           integer + std::string(1, '\0') + "\3" + varint(1) + "\1",  // an unknown order
           integer + std::string(2, '\0') + varint(0) + "\1",         // a divisor of 0
           integer + plain,                                           // no value
           integer + plain + varint(2) + "x",                         // something behind the end
           row + "\3" + std::string(1, '\0') + varint(2),             // more words than rows
           // NOLINTBEGIN(performance-inefficient-string-concatenation): to be read, not fast
           row + "\3" + std::string(1, '\0') + varint(1) + varint(99) + "x",  // a long word
           row + "\3" + std::string(1, '\0') + varint(1) + name("x") + plain + varint(2),
           row + "\3" + std::string(1, '\0') + varint(0) + plain + varint(0),  // a word of none
           // NOLINTEND(performance-inefficient-string-concatenation)
       }) {
    CAPTURE(content.size());
    CHECK(error_of(compressed(content)) == wrong);
  }
}

TEST_CASE("a segment of NULLs alone takes no memory for them") {
  std::string content = varint(kMaxSegmentRows) + varint(kMaxSegmentColumns);
  for (std::size_t i = 0; i < kMaxSegmentColumns; ++i) {
    content += name("a") + std::string(1, '\0');
  }
  const Segment segment = must_decode(compressed(content));
  CHECK(segment.rows() == kMaxSegmentRows);
  CHECK(segment.columns.back().is_null(kMaxSegmentRows - 1));
}
