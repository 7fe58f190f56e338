// `sphase web`: a link that logs the user in at the collector's web page.
#pragma once

#include <CLI/CLI.hpp>

namespace sphase {

void add_web(CLI::App& app, int& code);

}  // namespace sphase
