// Numbers and texts as bytes: of segments, and of what goes over the wire. A varint is LEB128: 7
// bits a byte, lowest first, at most 10 bytes. Signed numbers are zigzagged before: 0, -1, 1, -2 …
// become 0, 1, 2, 3 …
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sphase {

inline std::uint64_t zigzag(std::uint64_t number) { return (number << 1) ^ (0 - (number >> 63)); }
inline std::uint64_t unzigzag(std::uint64_t number) { return (number >> 1) ^ (0 - (number & 1)); }

inline std::size_t varint_bytes(std::uint64_t number) {
  return (static_cast<std::size_t>(std::bit_width(number | 1)) + 6) / 7;
}

inline void put_varint(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  out += static_cast<char>(number);
}

inline void put_number(std::string& out, std::int64_t number) {
  put_varint(out, zigzag(static_cast<std::uint64_t>(number)));
}

inline void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out += text;
}

/// Takes bytes from the front. Once something was not there, everything is 0 and failed() is true.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1).empty() ? 0 : last_.front()); }
  std::string_view take(std::size_t count) {
    if (count > left_.size()) {
      fail();
      count = 0;
    }
    last_ = left_.substr(0, count);
    left_.remove_prefix(count);
    return last_;
  }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto next = static_cast<std::uint8_t>(left_.front());
      left_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return shift == 63 && next > 1 ? fail() : number;
    }
    return fail();
  }
  /// A varint that may be `most` at most.
  std::size_t count(std::size_t most) {
    const std::uint64_t number = varint();
    return static_cast<std::size_t>(number > most ? fail() : number);
  }
  /// A length, and so many bytes; `most` at most.
  std::string_view text(std::size_t most) { return take(count(most)); }
  std::int64_t number() { return static_cast<std::int64_t>(unzigzag(varint())); }
  std::uint64_t fail() {
    failed_ = true;
    left_ = {};
    return 0;
  }
  bool failed() const { return failed_; }
  bool empty() const { return left_.empty(); }
  std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_, last_;
  bool failed_ = false;
};

}  // namespace sphase
