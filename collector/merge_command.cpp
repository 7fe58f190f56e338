#include "collector/merge_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collector/cluster_db.h"
#include "collector/ingest/merge_all.h"
#include "collector/record_round.h"
#include "collector/site.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::vector<std::string> paths;
  std::string db = default_cluster_path();
  bool no_records = false, all_jobs = false, json = false;
};

void print(const MergeOutcome& outcome, bool json) {
  if (json) {
    const Json out = {{"files", outcome.files},          {"runs", outcome.runs},
                      {"runs_changed", outcome.changed}, {"rows_written", outcome.rows},
                      {"records", outcome.records},      {"problems", outcome.problems},
                      {"warnings", outcome.warnings}};
    std::fputs((out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n').c_str(), stdout);
    return;
  }
  std::fputs((sentence_of(outcome) + '\n').c_str(), stdout);
}

int merge(const Arguments& arguments) {
  auto cluster = open_cluster(arguments.db);
  if (!cluster) {
    tell(cluster.error());
    return 1;
  }
  MergeOutcome outcome;
  for (const auto& path : arguments.paths) merge_path(*cluster, path, outcome);
  if (!arguments.no_records) {
    const auto source = slurm_records();
    RecordOptions options;
    options.every_job = arguments.all_jobs;
    if (auto looked = look_at_records(*cluster, *source, options, outcome); !looked) {
      outcome.problems.push_back(looked.error());
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
  command
      ->add_flag("--all-jobs", arguments->all_jobs,
                 "keep the records of every job that slurmctld holds, not only of those with "
                 "telemetry and their helpers")
      ->excludes("--no-records");
  command->add_flag("--json", arguments->json, "what was done, for programs");
  command->footer("Example:\n  sphase-collector merge /var/spool/sphase --db cluster.db");
  command->callback([arguments, &code] { code = merge(*arguments); });
}

}  // namespace sphase
