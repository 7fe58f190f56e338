// Text into a buffer of fixed size: what does not fit is cut, never written past the end.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace sphase {

class Text {
 public:
  Text(char* out, std::size_t size) : out_(out), size_(size) { out_[0] = '\0'; }

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
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
  void add(std::string_view text) { add("%.*s", static_cast<int>(text.size()), text.data()); }

  /// "8G", "512M", "3.9G"
  void memory(std::uint64_t mib) {
    if (mib < 1024) {
      add("%lluM", static_cast<unsigned long long>(mib));
    } else if (mib % 1024 == 0) {
      add("%lluG", static_cast<unsigned long long>(mib / 1024));
    } else {
      add("%.1fG", static_cast<double>(mib) / 1024);
    }
  }

  /// As a JSON string with its quotes; control bytes and bytes beyond ASCII become '?'.
  void json(const char* text) {
    add("\"");
    for (; *text != '\0'; ++text) {
      const auto c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\') {
        add("\\%c", c);
      } else {
        add("%c", c < ' ' || c > '~' ? '?' : c);
      }
    }
    add("\"");
  }

  bool empty() const { return used_ == 0; }
  bool cut() const { return cut_; }

 private:
  char* out_;
  std::size_t size_, used_ = 0;
  bool cut_ = false;
};

}  // namespace sphase
