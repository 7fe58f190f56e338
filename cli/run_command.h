// Slurm's own commands, where they know what we do not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/result.h"

namespace sphase {

struct CommandOutput {
  std::string text;  // stdout and stderr, as they came
  int code = 0;      // exit code; 1 where a signal ended it, 127 where it cannot be started
};

/// Runs `words`, found by $PATH, with `variables` added to the environment, and waits for its end.
/// Errors: no pipe or no process can be made.
Result<CommandOutput> run_command(
    const std::vector<std::string>& words,
    const std::vector<std::pair<const char*, const char*>>& variables = {});

}  // namespace sphase
