// Input of fuzz_frame for shipments: as the body of one, but for its segments, which are not
// compressed. Random changes hardly ever survive zstd's checksum; so the fuzzer reaches the rows.
#pragma once

#include <zstd.h>

#include <string>

#include "collector/ingest/shipment.h"
#include "common/bytes.h"
#include "tests/common/segment_bytes.h"

namespace sphase::testing {

/// What a segment holds; see common/segment.cpp.
inline std::string content_of(const std::string& segment) {
  std::string content(kMaxSegmentBytes, '\0');
  const std::size_t size =
      ZSTD_decompress(content.data(), content.size(), segment.data() + 1, segment.size() - 1);
  content.resize(ZSTD_isError(size) ? 0 : size);
  return content;
}

/// The input that makes this shipment.
inline std::string fuzz_input(const Shipment& shipment) {
  const auto put_segment = [](std::string& out, const Segment& segment) {
    put_text(out, content_of(*encode_segment(segment)));
  };
  std::string out;
  put_segment(out, shipment.runs);
  put_varint(out, shipment.raw.size());
  for (const RawRows& raw : shipment.raw) {
    put_text(out, raw.table);
    put_segment(out, raw.rows);
  }
  put_varint(out, shipment.sealed.size());
  for (const SealedRows& sealed : shipment.sealed) {
    put_varint(out, sealed.run);
    put_varint(out, sealed.table);
    put_number(out, sealed.sealed_ns);
    put_text(out, content_of(sealed.data));
  }
  return out;
}

/// The body of a shipment from any bytes.
inline std::string body_of_input(std::string_view input) {
  Bytes in(input);
  const auto segment = [&] { return name(compressed(std::string(in.text(kMaxSegmentBytes)))); };
  std::string body = std::string(1, '\4') + name("n1") + name("id") + std::string(2, '\0');
  body += segment();
  const std::size_t tables = in.count(100);
  put_varint(body, tables);
  for (std::size_t i = 0; i < tables && !in.failed(); ++i) {
    body += name(std::string(in.text(100)));
    body += segment();
  }
  const std::size_t count = in.count(100);
  put_varint(body, count);
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    put_varint(body, in.varint());
    put_varint(body, in.varint());
    put_number(body, in.number());
    body += segment();
  }
  return body;
}

}  // namespace sphase::testing
