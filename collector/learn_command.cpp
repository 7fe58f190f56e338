#include "collector/learn_command.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collector/cluster_db.h"
#include "collector/learn/learn.h"
#include "collector/site.h"
#include "common/clock.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string db, conf, table;
  bool all = false, json = false;
};

void print(const LearnOutcome& outcome, const std::string& table, bool json) {
  if (!json) {
    std::fputs((sentence_of(outcome) + '\n').c_str(), stdout);
    return;
  }
  Json out = {{"jobs", outcome.jobs},        {"observed", outcome.observed},
              {"skipped", outcome.skipped},  {"profiles", outcome.profiles},
              {"advised", outcome.advised},  {"table", table},
              {"entries", nullptr},          {"more", outcome.more},
              {"problems", outcome.problems}};
  if (outcome.entries >= 0) out["entries"] = outcome.entries;
  std::fputs((out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n').c_str(), stdout);
}

int run_learn(const Arguments& arguments) {
  auto site = load_site(arguments.conf);
  if (!site) {
    tell(site.error());
    return 2;
  }
  // Learning brings a database up to date, but makes none: a wrong path would look like no news.
  const std::string path = chosen_db(arguments.db, site->config);
  if (::access(path.c_str(), F_OK) != 0) {
    tell(read_cluster(path).error());
    return 1;
  }
  auto db = open_cluster(path);
  if (!db) {
    tell(db.error());
    return 1;
  }
  LearnOptions options;
  options.table = arguments.table.empty() ? site->config.advice_table : arguments.table;
  options.all = arguments.all || older_than(options.table, site->path);
  auto outcome = learn(*db, site->config, options, epoch_ns());
  if (!outcome) {
    tell(outcome.error());
    return 1;
  }
  for (const auto& problem : outcome->problems) tell(problem);
  print(*outcome, options.table, arguments.json);
  return outcome->problems.empty() ? 0 : 1;
}

}  // namespace

void add_learn(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("learn", "advice from the jobs that have ended");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db (default: $SPHASE_DB, or ClusterDatabase of sphase.conf)")
      ->type_name("FILE");
  command
      ->add_option("--conf", arguments->conf,
                   "sphase.conf (default: $SPHASE_CONF, or beside slurm.conf)")
      ->type_name("FILE");
  command
      ->add_option("--table", arguments->table,
                   "advice.cdb to write (default: AdviceTable of sphase.conf)")
      ->type_name("FILE");
  command->add_flag("--all", arguments->all,
                    "advice for every profile, also those without news since the last time");
  command->add_flag("--json", arguments->json, "what was done, for programs");
  command->footer(
      "Example:\n  sphase-collector learn --db cluster.db --table advice.cdb\n"
      "A new table is written aside and renamed: who reads it sees the old one or the new one.");
  command->callback([arguments, &code] { code = run_learn(*arguments); });
}

}  // namespace sphase
