// Commands that ask either a file or the collector, and print the same either way.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "collector/answer/answer.h"

namespace sphase {

struct Asked {
  Question question;
  std::string db, conf;  // as given
};

/// --db and --conf.
void add_places(CLI::App& command, Asked& asked);

/// The reply of the file that --db or $SPHASE_DB names, else of the collector that sphase.conf
/// names, else of the file at its usual place.
Reply reply_to(const Asked& asked, const Write& write);

/// The sentence of a reply to stderr. Returns its exit code.
int tell_problem(const Reply& reply);

/// Prints the reply: what was asked for to stdout, a problem to stderr. Returns the exit code.
int ask(const Asked& asked);

}  // namespace sphase
