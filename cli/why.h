// `sphase why`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommand. Its work is done in the callback, which leaves the exit code in `code`.
void add_why(CLI::App& app, int& code);

}  // namespace sphase
