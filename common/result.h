// A value, or one sentence that says why there is none.
//
// Inside sphase expected failures are values. An error is text for a person, built where the facts
// are known ("cannot open /x: Permission denied"), because nobody further up can say it better.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

namespace sphase {

struct Error {
  std::string text;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Error error) : held_(std::move(error)) {}

  explicit operator bool() const { return std::holds_alternative<T>(held_); }
  T& operator*() { return std::get<T>(held_); }
  const T& operator*() const { return std::get<T>(held_); }
  T* operator->() { return &std::get<T>(held_); }
  const T* operator->() const { return &std::get<T>(held_); }
  const std::string& error() const { return std::get<Error>(held_).text; }

 private:
  std::variant<T, Error> held_;
};

struct Done {};
using Status = Result<Done>;

/// "what: Permission denied", from errno as it stands.
inline Error errno_error(const std::string& what, int code = errno) {
  return Error{what + ": " + std::strerror(code)};
}

}  // namespace sphase
