// What a job script says about sizes, without running it.
#pragma once

#include <string_view>

namespace sphase {

struct ScriptFacts {
  bool explicit_sizes = false;  // gives srun or mpirun a size of its own
  bool resizes_itself = false;  // `sphase begin|run … --nodes`
};

/// Looks at the first 64 KiB. Words are split at blanks, quotes are not interpreted: a size hidden
/// in a variable is not seen, one in an `echo` is (then the job is left alone, which hurts nobody).
/// Cost: about 2 ns a byte.
ScriptFacts scan_script(std::string_view script);

}  // namespace sphase
