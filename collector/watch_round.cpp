#include "collector/watch_round.h"

#include "collector/cluster_db.h"
#include "collector/retention.h"
#include "common/clock.h"

namespace sphase {
namespace {

void fail(Round& round, const std::string& problem) {
  round.problems.push_back(problem);
  round.failed = true;
}

}  // namespace

void Watcher::merge(Database& cluster, Round& round) {
  MergeOutcome& merged = round.merged;
  for (const auto& path : options_.paths) {
    merge_path(cluster, path, merged, &known_[path], stopped_);
  }
  round.problems = merged.problems;
  // One damaged file is no reason to wait with the others.
  round.failed = merged.files + merged.unchanged == 0 && !merged.problems.empty();
  if (records_ && !stopped_()) {
    const RecordOptions options{options_.all_jobs, &poller_};
    auto looked = look_at_records(cluster, *records_, options, merged);
    if (!looked) fail(round, looked.error());
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

/// A few times an hour is often enough.
void Watcher::give_up_samples(Database& cluster, const Site& site, Round& round) {
  constexpr std::int64_t kEveryNs = 600'000'000'000;
  if (retired_ns_ != 0 && monotonic_ns() - retired_ns_ < kEveryNs) return;
  retired_ns_ = monotonic_ns();
  const Retention retention{site.config.sample_days,
                            static_cast<std::int64_t>(site.config.database_most_mib) << 20};
  auto retired = retire(cluster, retention, epoch_ns());
  if (!retired) return fail(round, retired.error());
  if (retired->still_too_large) {
    round.problems.push_back(
        "the database is larger than MaxDatabase, and has no samples left to give up");
  }
}

Round Watcher::round(const Site& site, const std::string& db) {
  Round round;
  auto cluster = open_cluster(db);
  if (!cluster) {
    fail(round, cluster.error());
    return round;
  }
  merge(*cluster, round);
  if (!stopped_()) learn_news(*cluster, site, round);
  if (!stopped_()) give_up_samples(*cluster, site, round);
  return round;
}

void reload(const std::string& conf, Site& site, std::vector<std::string>& problems) {
  auto fresh = load_site(conf);
  if (fresh) {
    site = std::move(*fresh);
  } else {
    problems.push_back(fresh.error());
  }
}

}  // namespace sphase
