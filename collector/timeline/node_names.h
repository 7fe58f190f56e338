// Node names as people read them: n2 before n10, and "n[1-3,7]" for many.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sphase {

/// Digits compare as numbers: n2 < n10.
bool node_less(std::string_view a, std::string_view b);

/// "n[1-3,7],login" from names in any order; repeated ones once. The opposite of a host list
/// expression as Slurm writes it, for names that end in one number.
std::string compress_nodes(std::vector<std::string> names);

}  // namespace sphase
