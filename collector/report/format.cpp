#include "collector/report/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Bytes of the UTF-8 sequence at the front, its code point in `point`; 0 if it is not one.
std::size_t decode(std::string_view text, std::uint32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  return point < kLeast.at(length) || surrogate || point > 0x10FFFF ? 0 : length;
}

/// Control characters, and those that reorder or hide what is around them.
bool harmful(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD || point == 0x61C ||
         (point >= 0x200B && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF ||
         (point >= 0xFFF9 && point <= 0xFFFB) || (point >= 0xE0000 && point <= 0xE007F);
}

}  // namespace

std::string format_duration(std::int64_t ns) {
  const double seconds = static_cast<double>(ns) / kSecond;
  if (ns < kSecond / 1000) return fmt::format("{:.3f} ms", seconds * 1e3);
  if (seconds < 0.9995) return fmt::format("{:.4g} ms", seconds * 1e3);
  if (ns % kSecond == 0 && ns < 60 * kSecond) return fmt::format("{} s", ns / kSecond);
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  const std::int64_t whole = (ns + kSecond / 2) / kSecond;
  const std::int64_t s = whole % 60, m = whole / 60 % 60, h = whole / 3600;
  if (h == 0) return fmt::format("{}m{:02}s", m, s);
  if (h < 24) return fmt::format("{}h{:02}m{:02}s", h, m, s);
  return fmt::format("{}d{:02}h{:02}m", h / 24, h % 24, m);
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kUnits.at(unit));
}

std::string format_count(double value) {
  if (value < 999.5) return fmt::format("{:.0f}", value);
  constexpr std::array<const char*, 6> kUnits = {"k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  value /= 1000;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits.at(unit));
}

std::string format_number(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size < 0.005) return "<0.01";
  if (size < 0.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) {
    const double tenths = std::round(value * 10) / 10;
    return fmt::format("{:g}", tenths);
  }
  return fmt::format("{:.0f}", value);
}

std::string format_percent(double ratio) { return fmt::format("{:.0f} %", ratio * 100); }

std::string format_time(std::int64_t epoch_s) {
  const std::time_t time = epoch_s;
  std::tm parts{};
  if (localtime_r(&time, &parts) == nullptr) return fmt::format("@{}", epoch_s);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string clean(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    std::uint32_t point = 0;
    const std::size_t length = decode(text, point);
    const std::size_t taken = length == 0 ? 1 : length;
    if (length > 0 && !harmful(point)) {
      safe += text.substr(0, length);
    } else {
      for (const char c : text.substr(0, taken)) {
        safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    text.remove_prefix(taken);
  }
  return safe;
}

std::size_t width(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

std::string shorten(const std::string& text, std::size_t columns) {
  const std::size_t all = width(text);
  if (all <= columns || columns < 3) return text;
  const std::size_t head = (columns - 1) / 2, tail = columns - 1 - head;
  std::string cut;
  std::size_t at = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++at;
    if (at == head + 1 && !cut.ends_with("…")) cut += "…";
    if (at <= head || at > all - tail) cut += c;
  }
  return cut;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace sphase
