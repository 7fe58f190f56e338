#include <algorithm>
#include <sstream>
#include <string_view>

#include "cli/dry_run.h"
#include "collector/report/format.h"

namespace sphase {
namespace {

bool drop_front(std::string& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.erase(0, front.size());
  return true;
}

}  // namespace

DryRun sort_lines(const std::string& said) {
  DryRun result;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    line = clean(line);
    drop_front(line, "sbatch: ");
    if (line.empty()) continue;
    const bool ours = drop_front(line, "sphase: ");
    (ours ? result.explanation : result.slurm).push_back(line);
  }
  return result;
}

std::vector<std::string> sbatch_arguments(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {"--test-only"};
  const bool script_first = !words.empty() && !words.front().starts_with('-');
  arguments.insert(arguments.end(), words.begin() + (script_first ? 1 : 0), words.end());
  if (script_first) arguments.push_back(words.front());
  return arguments;
}

}  // namespace sphase
