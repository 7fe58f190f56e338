// SPDX-License-Identifier: MIT
//
// C++ scopes over sphase.h (C++11, header only): a phase ends where its scope ends, also by an
// exception.
//
//     {
//       const sphase::Scope solve("solve");
//       sphase::attr("cells", "1000000");
//       ...
//     }
//
// Costs what a begin and an end cost; allocates nothing.
#ifndef SPHASE_HPP
#define SPHASE_HPP

#include <sphase.h>

namespace sphase {

class Scope {
 public:
  /// `name` must live as long as the scope; a literal does.
  explicit Scope(const char* name) noexcept : name_(name) { sphase_begin(name_); }
  ~Scope() { sphase_end(name_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const char* name_;
};

/// See sphase_value() and sphase_attr().
inline void value(const char* name, double number) noexcept { sphase_value(name, number); }
inline void attr(const char* key, const char* text) noexcept { sphase_attr(key, text); }

}  // namespace sphase

#endif
