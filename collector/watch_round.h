// One round of `watch` and `serve`: what is new is merged, the scheduler is asked, and learned
// from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/merge_all.h"
#include "collector/learn/learn.h"
#include "collector/record_round.h"
#include "collector/records/record_poller.h"
#include "collector/site.h"

namespace sphase {

struct Round {
  MergeOutcome merged;
  std::optional<LearnOutcome> learned;
  std::vector<std::string> problems;  // everything that is to be told
  bool failed = false;                // waiting longer may help
};

struct WatchOptions {
  std::vector<std::string> paths;  // node.db files or folders to merge; none where nodes ship
  std::int64_t records_interval_s = 60;
  bool all_jobs = false;  // keep records of jobs without telemetry, too
};

class Watcher {
 public:
  /// `records`: whom to ask about jobs, null: nobody. `stopped` is asked between two steps.
  Watcher(WatchOptions options, std::unique_ptr<RecordSource> records,
          std::function<bool()> stopped)
      : options_(std::move(options)),
        records_(std::move(records)),
        stopped_(std::move(stopped)),
        poller_({options_.records_interval_s, kAwayMostS}) {}

  Round round(const Site& site, const std::string& db);

 private:
  void merge(Database& cluster, Round& round);
  void learn_news(Database& cluster, const Site& site, Round& round);
  void give_up_samples(Database& cluster, const Site& site, Round& round);

  /// A daemon that is away is asked again after so long at most.
  static constexpr std::int64_t kAwayMostS = 15 * 60;

  WatchOptions options_;
  std::unique_ptr<RecordSource> records_;
  std::function<bool()> stopped_;
  RecordPoller poller_;
  std::int64_t retired_ns_ = 0;               // when samples were given up last; monotonic
  std::map<std::string, MergedFiles> known_;  // by path
};

/// Reads sphase.conf again. One that was broken while we run: the last good one stays in force.
void reload(const std::string& conf, Site& site, std::vector<std::string>& problems);

}  // namespace sphase
