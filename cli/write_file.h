// Writes a file whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "common/result.h"

namespace sphase {

/// Writes `text` beside `path` and renames it there, with the mode that the umask leaves of 0666:
/// whoever reads the file sees the old one or the new one. A link is followed; what is no regular
/// file (a pipe, /dev/null) is written into. Errors: "cannot write FILE: why".
Status write_file(const std::string& path, std::string_view text);

}  // namespace sphase
