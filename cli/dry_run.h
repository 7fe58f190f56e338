// `sphase dry-run`: what slurmctld would make of a job, without submitting it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace sphase {

/// What sbatch said.
struct DryRun {
  std::vector<std::string> explanation;  // sphase's lines, without who said them
  std::vector<std::string> slurm;        // all others
};

/// Sorts the lines that sbatch wrote.
DryRun sort_lines(const std::string& said);

/// Arguments for sbatch: `words` is a script with sbatch's options behind it, or as sbatch itself
/// takes them.
std::vector<std::string> sbatch_arguments(const std::vector<std::string>& words);

/// Adds the subcommand. Its work is done in the callback, which leaves the exit code in `code`.
void add_dry_run(CLI::App& app, int& code);

}  // namespace sphase
