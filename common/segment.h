// Many rows of one table as one compressed value, and back: exactly the same rows, NULLs too.
//
// Knows nothing of SQLite: the recorder puts rows in (store/seal.h), the collector takes them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace sphase {

/// Values of one column, one for each row.
class SegmentColumn {
 public:
  enum class Type : std::uint8_t { kNull, kInteger, kReal, kText };  // kNull: NULL in every row

  explicit SegmentColumn(std::string name) : name_(std::move(name)) {}

  /// False, and nothing is added, where the column has values of another type: SQLite allows that,
  /// a segment does not.
  [[nodiscard]] bool add(std::int64_t value) { return add(Type::kInteger, value); }
  [[nodiscard]] bool add(double value);
  [[nodiscard]] bool add(std::string_view text);
  void add_null();

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
  std::size_t rows() const { return rows_; }
  bool is_null(std::size_t row) const {
    return type_ == Type::kNull || (!nulls_.empty() && nulls_[row]);
  }
  /// Of a row that is not NULL, in a column of that type.
  std::int64_t integer(std::size_t row) const { return values_[row]; }
  double real(std::size_t row) const;
  std::optional<std::int64_t> maybe_integer(std::size_t row) const {
    return type_ == Type::kInteger && !is_null(row) ? std::optional(values_[row]) : std::nullopt;
  }
  const std::string& text(std::size_t row) const {
    return words_[static_cast<std::size_t>(values_[row])];
  }
  /// B; of all different texts together.
  std::size_t word_bytes() const { return word_bytes_; }

 private:
  friend class SegmentWriter;
  friend class SegmentReader;
  bool add(Type type, std::int64_t value);

  std::string name_;
  Type type_ = Type::kNull;
  std::size_t rows_ = 0;
  // [row], 0 where NULL; integers, the bits of reals, or places in words_. Empty for kNull.
  std::vector<std::int64_t> values_;
  std::vector<bool> nulls_;  // [row]; empty: none so far
  std::vector<std::string> words_;
  std::size_t word_bytes_ = 0;
};

/// All columns have the same number of rows.
struct Segment {
  std::vector<SegmentColumn> columns;
  std::size_t rows() const { return columns.empty() ? 0 : columns.front().rows(); }
  /// nullptr: there is no such column.
  const SegmentColumn* find(std::string_view name) const;
};

/// What a segment may hold. By these limits decoding takes less than 100 MB, whatever the
/// bytes say.
inline constexpr std::size_t kMaxSegmentRows = 16'384;
inline constexpr std::size_t kMaxSegmentColumns = 64;
inline constexpr std::size_t kMaxSegmentBytes = 4 << 20;  // before compression

/// Errors: one of the limits above, or columns of different lengths.
/// Cost: 0.7 µs per row of table `sample`, which then takes 12 B at 512 rows (29 B at 16).
Result<std::string> encode_segment(const Segment& segment);

/// Takes any bytes. Errors: one sentence for what is cut, altered, too large or of a newer format.
/// Cost: 0.1 µs per row of table `sample`.
Result<Segment> decode_segment(std::string_view bytes);

}  // namespace sphase
