// `sphase report` and `sphase jobs`.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

/// Adds the subcommands. Their work is done in the callbacks, which leave the exit code in `code`.
void add_report(CLI::App& app, int& code);
void add_jobs(CLI::App& app, int& code);

}  // namespace sphase
