#include "spank/recorder/file.h"

#include <algorithm>
#include <charconv>

namespace sphase {

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMost = 1 << 20;
  const Fd fd = open_read(path);
  if (!fd) return std::nullopt;
  std::string text;
  char buffer[8192];
  while (text.size() < kMost) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof(buffer));
    if (size < 0) return std::nullopt;
    if (size == 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  const std::size_t start = text.find_first_of("0123456789");
  if (start == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data() + start, text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  std::optional<std::int64_t> number;
  numbers_after(text, {{key, &number}});
  return number;
}

void numbers_after(std::string_view text, std::initializer_list<Wanted> wanted) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    for (const auto& [key, number] : wanted) {
      if (line.size() > key.size() && (line[key.size()] == ' ' || line[key.size()] == ':') &&
          line.starts_with(key)) {
        *number = parse_number(line.substr(key.size() + 1));
      }
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace sphase
