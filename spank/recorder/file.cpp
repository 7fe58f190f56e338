#include "spank/recorder/file.h"

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
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.size() > key.size() + 1 && line.substr(0, key.size()) == key &&
        (line[key.size()] == ' ' || line[key.size()] == ':')) {
      return parse_number(line.substr(key.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace sphase
