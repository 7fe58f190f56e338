#include "collector/watch_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/file_lock.h"
#include "collector/site.h"
#include "collector/stop_signals.h"
#include "collector/watch.h"
#include "collector/watch_round.h"

namespace sphase {
namespace {

struct Arguments {
  std::vector<std::string> paths;
  std::string db, conf, interval, records_interval = "60s";
  bool once = false, no_records = false, all_jobs = false;
};

int once(Watcher& watcher, const Site& site, const std::string& db) {
  const Round round = watcher.round(site, db);
  for (const auto& problem : round.problems) tell(problem);
  std::fputs((sentence_of(round.merged) + '\n').c_str(), stdout);
  if (round.learned) std::fputs((sentence_of(*round.learned) + '\n').c_str(), stdout);
  // As with merge: a daemon that does not answer, or an empty folder, is no failure.
  const bool learned = round.learned && round.learned->problems.empty();
  return !round.failed && learned && round.merged.problems.empty() ? 0 : 1;
}

void watch(Watcher& watcher, const Arguments& arguments, Site site, const std::string& db,
           std::int64_t interval_s, StopSignals& stop) {
  ProblemLog log;
  Backoff backoff(interval_s);
  tell(fmt::format("watching {}, every {} s, into {}", fmt::join(arguments.paths, ", "), interval_s,
                   db));
  for (bool over = false; !over;) {
    std::vector<std::string> problems;
    reload(arguments.conf, site, problems);
    Round round = watcher.round(site, db);
    problems.insert(problems.end(), round.problems.begin(), round.problems.end());
    for (const auto& line : log.lines_for(problems)) tell(line);
    over = stop.wait(backoff.after(round.failed));
  }
  tell("told to stop");
}

int run_watch(const Arguments& arguments) {
  auto site = load_site(arguments.conf);
  if (!site) {
    tell(site.error());
    return 2;
  }
  std::optional<std::int64_t> interval_s = site->config.watch_interval_s;
  if (!arguments.interval.empty()) interval_s = parse_interval(arguments.interval);
  if (!interval_s) {
    tell("--interval " + arguments.interval + ": right are 60s, 5m or 1h, from 1s to 24h");
    return 2;
  }
  const auto records_interval_s = parse_interval(arguments.records_interval);
  if (!records_interval_s) {
    tell("--records-interval " + arguments.records_interval +
         ": right are 60s, 5m or 1h, from 1s to 24h");
    return 2;
  }
  const std::string db = chosen_db(arguments.db, site->config);
  StopSignals stop;
  auto lock = FileLock::take(db + ".watch");
  if (!lock) {
    tell(lock.error() + ": one watch per database");
    return 1;
  }
  Watcher watcher({arguments.paths, *records_interval_s, arguments.all_jobs},
                  arguments.no_records ? nullptr : slurm_records(),
                  [&stop] { return stop.came(); });
  if (arguments.once) return once(watcher, *site, db);
  watch(watcher, arguments, std::move(*site), db, *interval_s, stop);
  return 0;
}

}  // namespace

void add_watch(CLI::App& app, int& code) {
  auto arguments = std::make_shared<Arguments>();
  auto* command = app.add_subcommand("watch", "merge and learn, again and again");
  command
      ->add_option("paths", arguments->paths,
                   "node.db files, or folders that hold some (searched three levels deep)")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--db", arguments->db,
                   "cluster.db; made where absent (default: $SPHASE_DB, or ClusterDatabase of "
                   "sphase.conf)")
      ->type_name("FILE");
  command
      ->add_option("--conf", arguments->conf,
                   "sphase.conf, read again in each round (default: $SPHASE_CONF, or beside "
                   "slurm.conf)")
      ->type_name("FILE");
  command
      ->add_option("--interval", arguments->interval,
                   "from the end of a round to the next: 60s, 5m (default: WatchInterval of "
                   "sphase.conf); doubles up to 15 min while rounds fail")
      ->type_name("TIME");
  command
      ->add_option("--records-interval", arguments->records_interval,
                   "shortest time between two questions to slurmctld, and to slurmdbd: 60s, 5m "
                   "(default: 60s); doubles up to 15 min while one is away")
      ->type_name("TIME");
  command->add_flag("--all-jobs", arguments->all_jobs,
                    "keep the records of every job that slurmctld holds, not only of those with "
                    "telemetry and their helpers");
  command->add_flag("--once", arguments->once, "one round, then end");
  command->add_flag("--no-records", arguments->no_records, "do not ask slurmctld and slurmdbd");
  command->footer(
      "Example:\n  sphase-collector watch /var/spool/sphase --db cluster.db --interval 60s\n"
      "SIGTERM ends it after the step that it is at. A line is logged when something changes.");
  command->callback([arguments, &code] { code = run_watch(*arguments); });
}

}  // namespace sphase
