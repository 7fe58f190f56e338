// `sphase profile list`, `show` and `forget`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommand. Its work is done in the callbacks, which leave the exit code in `code`.
void add_profile(CLI::App& app, int& code);

}  // namespace sphase
