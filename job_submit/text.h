// Text into a buffer of fixed size: what does not fit is cut, never written past the end.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace sphase {

class Text {
 public:
  Text(char* out, std::size_t size) : out_(out), size_(size) { out_[0] = '\0'; }

  __attribute__((format(printf, 2, 3))) void print(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int more = std::vsnprintf(out_ + used_, size_ - used_, format, arguments);
    va_end(arguments);
    if (more < 0) return;
    used_ += static_cast<std::size_t>(more);
    if (used_ >= size_) {
      used_ = size_ - 1;
      cut_ = true;
    }
  }
  /// Without a format, as most of what is written: printf would cost five times as much.
  Text& add(std::string_view text) {
    const std::size_t room = size_ - 1 - used_;
    const std::size_t taken = text.size() < room ? text.size() : room;
    std::memcpy(out_ + used_, text.data(), taken);
    used_ += taken;
    out_[used_] = '\0';
    cut_ = cut_ || taken < text.size();
    return *this;
  }
  void put(char c) { add(std::string_view(&c, 1)); }
  Text& number(std::uint64_t value) {
    char digits[20];
    std::size_t at = sizeof(digits);
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return add(std::string_view(digits + at, sizeof(digits) - at));
  }

  /// "8G", "512M", "3.9G"
  void memory(std::uint64_t mib) {
    if (mib < 1024) {
      number(mib);
      put('M');
    } else if (mib % 1024 == 0) {
      number(mib / 1024);
      put('G');
    } else {
      print("%.1fG", static_cast<double>(mib) / 1024);
    }
  }

  /// As a JSON string with its quotes; control bytes and bytes beyond ASCII become '?'.
  void json(const char* text) {
    put('"');
    for (; *text != '\0'; ++text) {
      const bool plain = *text >= ' ' && *text <= '~';
      if (*text == '"' || *text == '\\') put('\\');
      put(plain ? *text : '?');
    }
    put('"');
  }

  bool empty() const { return used_ == 0; }
  bool cut() const { return cut_; }

 private:
  char* out_;
  std::size_t size_, used_ = 0;
  bool cut_ = false;
};

}  // namespace sphase
