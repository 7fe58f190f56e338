// `sphase-collector serve` and `sphase-collector node`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Add the subcommands. Their work is done in the callbacks, which leave the exit code in `code`.
void add_serve(CLI::App& app, int& code);
void add_node(CLI::App& app, int& code);

}  // namespace sphase
