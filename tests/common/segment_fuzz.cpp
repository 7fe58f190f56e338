// Any bytes as a segment: the decoder neither crashes nor reads outside nor takes more memory than
// it says; and what it accepts comes back the same when it is written again. An entry point of
// libFuzzer (./dev fuzz segment).
//
// Random changes hardly ever survive zstd's checksum. Input that begins with an even byte is
// therefore compressed here first, so that the fuzzer reaches the columns.
#include <cstdlib>
#include <cstring>

#include "common/segment.h"
#include "tests/common/segment_bytes.h"

namespace {

using namespace sphase;

bool same_cell(const SegmentColumn& a, const SegmentColumn& b, std::size_t row) {
  if (a.is_null(row) || b.is_null(row)) return a.is_null(row) && b.is_null(row);
  if (a.type() == SegmentColumn::Type::kText) return a.text(row) == b.text(row);
  return a.integer(row) == b.integer(row);
}

void check_again(const Segment& segment) {
  const auto bytes = encode_segment(segment);
  if (!bytes) return;  // as good as empty names may make it too large
  const auto again = decode_segment(*bytes);
  if (!again || again->rows() != segment.rows()) std::abort();
  for (std::size_t i = 0; i < segment.columns.size(); ++i) {
    if (again->columns[i].name() != segment.columns[i].name()) std::abort();
    for (std::size_t row = 0; row < segment.rows(); ++row) {
      if (!same_cell(segment.columns[i], again->columns[i], row)) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (data[0] % 2 == 0) bytes = testing::compressed(bytes.substr(1));
  const auto segment = decode_segment(bytes);
  if (segment && segment->rows() < 2000) check_again(*segment);
  return 0;
}
