// One round of `watch` and `serve`: what is new is merged, the scheduler is asked, and learned
// from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/merge_all.h"
#include "collector/learn/learn.h"
#include "collector/site.h"

namespace sphase {

struct Round {
  MergeOutcome merged;
  std::optional<LearnOutcome> learned;
  std::vector<std::string> problems;  // everything that is to be told
  bool failed = false;                // waiting longer may help
};

class Watcher {
 public:
  /// `paths`: node.db files or folders to merge; none where nodes ship. `records`: whom to ask
  /// about jobs, null: nobody. `stopped` is asked between two steps.
  Watcher(std::vector<std::string> paths, std::unique_ptr<RecordSource> records,
          std::function<bool()> stopped)
      : paths_(std::move(paths)), records_(std::move(records)), stopped_(std::move(stopped)) {}

  Round round(const Site& site, const std::string& db);

 private:
  void merge(Database& cluster, Round& round);
  void learn_news(Database& cluster, const Site& site, Round& round);

  std::vector<std::string> paths_;
  std::unique_ptr<RecordSource> records_;
  std::function<bool()> stopped_;
  std::map<std::string, MergedFiles> known_;  // by path
};

/// Reads sphase.conf again. One that was broken while we run: the last good one stays in force.
void reload(const std::string& conf, Site& site, std::vector<std::string>& problems);

}  // namespace sphase
