// Printers of what was learned about a profile.
#pragma once

#include <string>

#include "cli/learned.h"

namespace sphase {

/// For people: at most 100 columns. With `sizes` every size that was considered.
std::string advice_text(const Learned& learned, bool sizes);

/// One object; units are in the names, null = not known or not advised.
std::string advice_json(const Learned& learned, bool sizes);

}  // namespace sphase
