// Reads what segment.cpp writes; the format stands there. Nothing in the bytes is believed: every
// count is compared with a limit and with the bytes that are left before anything is allocated.
#include <zstd.h>

#include <memory>

#include "common/bytes.h"
#include "common/segment.h"
#include "common/segment_format.h"

namespace sphase {
namespace {

constexpr std::size_t kMaxNameBytes = 128;

}  // namespace

/// Reads the content; see the top of segment.cpp.
class SegmentReader {
 public:
  explicit SegmentReader(std::string_view content) : bytes_(content) {}

  Result<Segment> segment() {
    Segment segment;
    const std::size_t rows = bytes_.count(kMaxSegmentRows);
    const std::size_t columns = bytes_.count(kMaxSegmentColumns);
    segment.columns.reserve(columns);
    for (std::size_t i = 0; i < columns && !bytes_.failed(); ++i) {
      segment.columns.push_back(column(rows, i == 0 ? nullptr : &segment.columns.back()));
    }
    if (bytes_.failed() || !bytes_.empty()) {
      return Error{"its content is not that of a segment"};
    }
    return segment;
  }

 private:
  SegmentColumn column(std::size_t rows, const SegmentColumn* before) {
    SegmentColumn column{std::string(bytes_.take(bytes_.count(kMaxNameBytes)))};
    const std::uint8_t type = bytes_.byte();
    if (type > static_cast<std::uint8_t>(SegmentColumn::Type::kText)) bytes_.fail();
    if (bytes_.failed()) return column;
    column.type_ = static_cast<SegmentColumn::Type>(type);
    column.rows_ = rows;
    if (column.type_ == SegmentColumn::Type::kNull) return column;
    take_nulls(column);
    if (column.type_ == SegmentColumn::Type::kText) take_words(column);
    take_values(column, before);
    return column;
  }

  void take_nulls(SegmentColumn& column) {
    const std::uint8_t any = bytes_.byte();
    if (any > 1) bytes_.fail();
    if (any != 1) return;
    const std::string_view bitmap = bytes_.take((column.rows_ + 7) / 8);
    if (bytes_.failed()) return;
    column.nulls_.resize(column.rows_);
    for (std::size_t row = 0; row < column.rows_; ++row) {
      column.nulls_[row] = (static_cast<std::uint8_t>(bitmap[row / 8]) >> row % 8 & 1) != 0;
    }
  }

  void take_words(SegmentColumn& column) {
    const std::size_t words = bytes_.count(column.rows_);
    if (words > bytes_.left()) bytes_.fail();
    for (std::size_t i = 0; i < words && !bytes_.failed(); ++i) {
      column.words_.emplace_back(bytes_.take(bytes_.count(kMaxSegmentBytes)));
      column.word_bytes_ += column.words_.back().size();
    }
  }

  void take_values(SegmentColumn& column, const SegmentColumn* before) {
    const std::uint8_t base = bytes_.byte();
    const std::uint8_t order = bytes_.byte();
    const std::uint64_t divisor = bytes_.varint();
    const bool has_base =
        before != nullptr && may_be_base(before->type_) && may_be_base(column.type_);
    if (base > 1 || (base == 1 && !has_base) || order > kMostOrder || divisor == 0) bytes_.fail();
    if (bytes_.failed()) return;
    column.values_.assign(column.rows_, 0);
    std::uint64_t sums[kMostOrder + 1] = {};  // the last value, its difference, and theirs
    for (std::size_t row = 0; row < column.rows_ && !bytes_.failed(); ++row) {
      if (column.is_null(row)) continue;
      sums[order] = unzigzag(bytes_.varint()) * divisor;
      for (int i = order; i > 0; --i) sums[i - 1] += sums[i];
      std::uint64_t value = sums[0];
      if (base == 1) value += static_cast<std::uint64_t>(before->values_[row]);
      column.values_[row] = static_cast<std::int64_t>(value);
      if (column.type_ == SegmentColumn::Type::kText && value >= column.words_.size()) {
        bytes_.fail();
      }
    }
  }

  Bytes bytes_;
};

Result<Segment> decode_segment(std::string_view bytes) {
  if (bytes.empty()) return Error{"it is empty"};
  if (bytes.front() != kFormat) {
    return Error{"its format is " + std::to_string(static_cast<unsigned char>(bytes.front())) +
                 ", this program knows " + std::to_string(kFormat)};
  }
  bytes.remove_prefix(1);
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return Error{"it is not compressed as a segment is"};
  }
  if (size > kMaxSegmentBytes) return Error{"it says that it is too large"};
  std::string content(static_cast<std::size_t>(size), '\0');
  const std::size_t got =
      ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got)) return Error{ZSTD_getErrorName(got)};
  content.resize(got);
  return SegmentReader(content).segment();
}

}  // namespace sphase
