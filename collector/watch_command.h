// `sphase-collector watch`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommand; its callback does the work and leaves the exit code in `code`.
void add_watch(CLI::App& app, int& code);

}  // namespace sphase
