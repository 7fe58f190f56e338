#include "collector/merge_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collector/cluster_db.h"
#include "collector/merge.h"
#include "collector/records.h"
#include "common/clock.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> paths;
  std::string db = default_cluster_path();
  bool no_records = false, json = false;
};

struct Outcome {
  std::int64_t files = 0, runs = 0, changed = 0, rows = 0, records = 0;
  std::vector<std::string> problems;  // of files
  std::vector<std::string> warnings;  // nothing found; a daemon that did not answer
};

void tell(const std::string& sentence) {
  std::fputs(("sphase-collector: " + sentence + '\n').c_str(), stderr);
}

void merge_path(Database& cluster, const std::string& path, Outcome& outcome) {
  auto files = find_sources(path);
  if (!files) {
    outcome.problems.push_back(files.error());
    if (auto noted = note_problem(cluster, path, files.error(), epoch_ns()); !noted) {
      outcome.problems.push_back(noted.error());
    }
    return;
  }
  if (files->empty()) {
    outcome.warnings.push_back("nothing to merge in " + path + " (searched three levels deep)");
  }
  for (const auto& file : *files) {
    auto merged = merge_file(cluster, file, epoch_ns());
    if (!merged) {
      outcome.problems.push_back(merged.error());
      continue;
    }
    ++outcome.files;
    outcome.runs += merged->runs;
    outcome.changed += merged->changed;
    outcome.rows += merged->rows;
    if (!merged->warning.empty()) outcome.problems.push_back(merged->warning);
  }
}

/// Slurm's records; a daemon that does not answer is told, and no reason to fail.
Status add_records(Database& cluster, Outcome& outcome) {
  const auto source = slurm_records();
  auto updated = update_records(cluster, *source, epoch_ns());
  if (!updated) return Error{"records: " + updated.error()};
  outcome.records = updated->jobs;
  outcome.warnings = updated->warnings;
  return Done{};
}

void print(const Outcome& outcome, bool json) {
  if (json) {
    const Json out = {{"files", outcome.files},          {"runs", outcome.runs},
                      {"runs_changed", outcome.changed}, {"rows_written", outcome.rows},
                      {"records", outcome.records},      {"problems", outcome.problems},
                      {"warnings", outcome.warnings}};
    std::fputs((out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n').c_str(), stdout);
    return;
  }
  fmt::print(
      "{} files, {} runs, {} of them new or with news, {} rows written, {} records of jobs\n",
      outcome.files, outcome.runs, outcome.changed, outcome.rows, outcome.records);
}

int merge(const Arguments& arguments) {
  auto cluster = open_cluster(arguments.db);
  if (!cluster) {
    tell(cluster.error());
    return 1;
  }
  Outcome outcome;
  for (const auto& path : arguments.paths) merge_path(*cluster, path, outcome);
  if (!arguments.no_records) {
    if (auto added = add_records(*cluster, outcome); !added) {
      outcome.problems.push_back(added.error());
    }
  }
  for (const auto& problem : outcome.problems) tell(problem);
  for (const auto& warning : outcome.warnings) tell(warning);
  print(outcome, arguments.json);
  return outcome.problems.empty() ? 0 : 1;
}

}  // namespace

void add_merge(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("merge", "from the node.db files of the nodes");
  command
      ->add_option("paths", arguments->paths,
                   "node.db files, or folders that hold some (searched three levels deep)")
      ->required()
      ->type_name("PATH");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db; made where absent (default: $SPHASE_DB, "
                   "or " +
                       default_cluster_path() + ")")
      ->type_name("FILE");
  command->add_flag("--no-records", arguments->no_records, "do not ask slurmctld and slurmdbd");
  command->add_flag("--json", arguments->json, "what was done, for programs");
  command->footer("Example:\n  sphase-collector merge /var/spool/sphase --db cluster.db");
  command->callback([arguments, &code] { code = merge(*arguments); });
}

}  // namespace sphase
