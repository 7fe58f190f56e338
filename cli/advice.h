// `sphase advice` and `sphase plan`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommands. Their work is done in the callbacks, which leave the exit code in `code`.
void add_advice(CLI::App& app, int& code);
void add_plan(CLI::App& app, int& code);

}  // namespace sphase
