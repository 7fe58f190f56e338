#include "collector/watch_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/cluster_db.h"
#include "collector/file_lock.h"
#include "collector/ingest/merge_all.h"
#include "collector/learn/learn.h"
#include "collector/site.h"
#include "collector/watch.h"
#include "common/clock.h"

namespace sphase {
namespace {

struct Arguments {
  std::vector<std::string> paths;
  std::string db, conf, interval;
  bool once = false, no_records = false;
};

/// SIGTERM and SIGINT, kept back until they are asked for: no step is cut short. Threads that are
/// made later inherit the mask.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    sigprocmask(SIG_BLOCK, &set_, nullptr);
  }
  /// True if one has come by now.
  bool came() { return wait(0); }
  /// Waits for one, at most so long.
  bool wait(std::int64_t seconds) {
    if (came_) return true;
    const std::int64_t until = monotonic_ns() + seconds * 1'000'000'000;
    do {
      const std::int64_t left = std::max<std::int64_t>(0, until - monotonic_ns());
      const timespec time{left / 1'000'000'000, left % 1'000'000'000};
      // Another signal (a debugger's, SIGCONT) ends the call early.
      came_ = sigtimedwait(&set_, nullptr, &time) > 0;
    } while (!came_ && monotonic_ns() < until);
    return came_;
  }

 private:
  sigset_t set_{};
  bool came_ = false;
};

struct Round {
  MergeOutcome merged;
  std::optional<LearnOutcome> learned;
  std::vector<std::string> problems;  // everything that is to be told
  bool failed = false;                // waiting longer may help
};

void fail(Round& round, const std::string& problem) {
  round.problems.push_back(problem);
  round.failed = true;
}

class Watcher {
 public:
  Watcher(const Arguments& arguments, StopSignals& stop) : arguments_(arguments), stop_(stop) {
    if (!arguments.no_records) records_ = slurm_records();
  }

  Round round(const Site& site, const std::string& db);

 private:
  void merge(Database& cluster, Round& round);
  void learn_news(Database& cluster, const Site& site, Round& round);

  const Arguments& arguments_;
  StopSignals& stop_;
  std::unique_ptr<RecordSource> records_;     // null: not wanted
  std::map<std::string, MergedFiles> known_;  // by path
};

void Watcher::merge(Database& cluster, Round& round) {
  MergeOutcome& merged = round.merged;
  for (const auto& path : arguments_.paths) {
    merge_path(cluster, path, merged, &known_[path], [this] { return stop_.came(); });
  }
  round.problems = merged.problems;
  // One damaged file is no reason to wait with the others.
  round.failed = merged.files + merged.unchanged == 0 && !merged.problems.empty();
  if (records_ && !stop_.came()) {
    if (auto added = add_records(cluster, *records_, merged); !added) fail(round, added.error());
  }
  round.problems.insert(round.problems.end(), merged.warnings.begin(), merged.warnings.end());
}

void Watcher::learn_news(Database& cluster, const Site& site, Round& round) {
  LearnOptions options;
  options.table = site.config.advice_table;
  options.all = older_than(options.table, site.path);
  auto learned = learn(cluster, site.config, options, epoch_ns());
  if (!learned) return fail(round, learned.error());
  round.problems.insert(round.problems.end(), learned->problems.begin(), learned->problems.end());
  round.learned = std::move(*learned);
}

Round Watcher::round(const Site& site, const std::string& db) {
  Round round;
  auto cluster = open_cluster(db);
  if (!cluster) {
    fail(round, cluster.error());
    return round;
  }
  merge(*cluster, round);
  if (!stop_.came()) learn_news(*cluster, site, round);
  return round;
}

/// A configuration that was broken while we run: the last good one stays in force.
void reload(const Arguments& arguments, Site& site, std::vector<std::string>& problems) {
  auto fresh = load_site(arguments.conf);
  if (fresh) {
    site = std::move(*fresh);
  } else {
    problems.push_back(fresh.error());
  }
}

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
    reload(arguments, site, problems);
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
  const std::string db = chosen_db(arguments.db, site->config);
  StopSignals stop;
  auto lock = FileLock::take(db + ".watch");
  if (!lock) {
    tell(lock.error() + ": one watch per database");
    return 1;
  }
  Watcher watcher(arguments, stop);
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
  command->add_flag("--once", arguments->once, "one round, then end");
  command->add_flag("--no-records", arguments->no_records, "do not ask slurmctld and slurmdbd");
  command->footer(
      "Example:\n  sphase-collector watch /var/spool/sphase --db cluster.db --interval 60s\n"
      "SIGTERM ends it after the step that it is at. A line is logged when something changes.");
  command->callback([arguments, &code] { code = run_watch(*arguments); });
}

}  // namespace sphase
