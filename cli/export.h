// `sphase export`: the rows of one table, for other programs.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommand. Its work is done in the callback, which leaves the exit code in `code`.
void add_export(CLI::App& app, int& code);

}  // namespace sphase
