// How names of sphase.conf are compared.
#pragma once

#include <strings.h>

#include <string_view>

namespace sphase {

/// Whatever their case, as Slurm's own names.
inline bool equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sphase
