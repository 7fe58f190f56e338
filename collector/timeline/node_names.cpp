#include "collector/timeline/node_names.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

namespace sphase {
namespace {

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && digit(text[count])) ++count;
  const auto digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

int compare_digits(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view digits) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
  };
  const auto x = plain(a), y = plain(b);
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  const int order = x.compare(y);
  return order != 0 ? order : static_cast<int>(a.size()) - static_cast<int>(b.size());
}

/// A name split before its last number, if it ends in one that fits.
struct Numbered {
  std::string_view prefix, digits;
  std::uint64_t number = 0;
};

Numbered split(std::string_view name) {
  std::size_t at = name.size();
  while (at > 0 && digit(name[at - 1])) --at;
  if (at == name.size() || name.size() - at > 15) return {name, {}, 0};
  const auto digits = name.substr(at);
  return {name.substr(0, at), digits, std::strtoull(std::string(digits).c_str(), nullptr, 10)};
}

bool follows(const Numbered& a, const Numbered& b) {
  return b.prefix == a.prefix && b.digits.size() == a.digits.size() && b.number == a.number + 1;
}

}  // namespace

bool node_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (digit(a[0]) && digit(b[0])) {
      const int order = compare_digits(take_digits(a), take_digits(b));
      if (order != 0) return order < 0;
    } else if (a[0] != b[0]) {
      return a[0] < b[0];
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::string compress_nodes(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), node_less);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    const Numbered head = split(names[i]);
    std::string ranges;
    std::size_t members = 0;
    while (i < names.size() && !head.digits.empty() && split(names[i]).prefix == head.prefix &&
           !split(names[i]).digits.empty()) {
      Numbered last = split(names[i]);
      if (!ranges.empty()) ranges += ',';
      ranges += last.digits;
      const std::size_t from = i;
      while (i + 1 < names.size() && follows(last, split(names[i + 1]))) last = split(names[++i]);
      if (i > from) ranges.append("-").append(last.digits);
      members += ++i - from;
    }
    if (!text.empty()) text += ',';
    if (members == 0) {
      text += names[i++];
    } else if (members == 1) {
      text += names[i - 1];
    } else {
      text.append(head.prefix).append("[").append(ranges).append("]");
    }
  }
  return text;
}

}  // namespace sphase
