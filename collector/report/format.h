// Numbers and names as people read them, safe to print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sphase {

/// "0.250 ms", "12 s", "12.35 s", "1m02s", "1h02m03s", "3d04h05m". At most 9 characters up to 99
/// days.
std::string format_duration(std::int64_t ns);

/// "512 B", "1.5 KiB", "12.3 MiB", "123 GiB". At most 8 characters.
std::string format_bytes(std::int64_t bytes);

/// Four significant digits at most: "0", "0.12", "3.4", "123", "45678".
std::string format_number(double value);

/// Powers of 1000, three digits: "0", "999", "1.23 k", "45.6 M", "789 G".
std::string format_count(double value);

/// "87 %" from 0.87.
std::string format_percent(double ratio);

/// "2025-01-31 14:05:09" in local time.
std::string format_time(std::int64_t epoch_s);

/// "-" for what is not known.
template <typename T, typename Format>
std::string or_dash(const std::optional<T>& value, Format format) {
  return value ? std::string(format(*value)) : "-";
}
inline std::string or_dash(const std::optional<std::string>& value);

/// Text that came out of a job, made harmless: control characters, escape sequences, characters
/// that reorder or hide text, and bytes that are not UTF-8 are shown as \xNN.
std::string clean(std::string_view text);

/// Characters as a terminal shows them (each code point as one).
std::size_t width(std::string_view text);

/// Cut to `columns` with … in the middle, so that both ends of a path can be read.
std::string shorten(const std::string& text, std::size_t columns);

/// A field of a CSV file (RFC 4180): quoted where it must be.
std::string csv_field(std::string_view text);

inline std::string or_dash(const std::optional<std::string>& value) {
  return value && !value->empty() ? clean(*value) : "-";
}

}  // namespace sphase
