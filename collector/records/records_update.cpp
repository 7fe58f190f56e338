// One look: what is open is asked for, joined and stored.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "collector/records/open_jobs.h"
#include "collector/records/record_poller.h"
#include "collector/records/records.h"
#include "collector/records/records_words.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Rows = std::vector<JobRow>;

JobKey key_of(const JobFacts& facts) { return {facts.cluster, facts.job_id}; }

/// One question to one daemon, when its time has come.
class Asking {
 public:
  Asking(const RecordOptions& options, std::int64_t now_ns) : options_(options), now_ns_(now_ns) {}

  bool due(Daemon daemon) const {
    return options_.poller == nullptr || options_.poller->due(daemon, now_ns_);
  }
  /// True if it answered; the rows are taken over.
  bool took(Daemon daemon, Result<Rows> answer, Rows& rows) {
    if (answer) {
      if (options_.poller != nullptr) options_.poller->answered(daemon, now_ns_);
      rows = std::move(*answer);
      return true;
    }
    if (options_.poller != nullptr) {
      options_.poller->failed(daemon, answer.error(), now_ns_);
    } else {
      warnings_.push_back(answer.error());
    }
    return false;
  }
  std::vector<std::string> warnings() const {
    return options_.poller != nullptr ? options_.poller->problems() : warnings_;
  }

 private:
  const RecordOptions& options_;
  std::int64_t now_ns_;
  std::vector<std::string> warnings_;
};

/// slurmctld shows a helper that gave its nodes away in the second in which its parent grew.
Maybe parent_of(const JobRow& helper, const Rows& rows, const std::set<JobKey>& asked) {
  Maybe parent;
  for (const auto& row : rows) {
    const bool grew = !row.gave_away && row.resize_s && asked.contains(key_of(row.facts)) &&
                      row.facts.uid == helper.facts.uid &&
                      std::abs(*row.resize_s - *helper.resize_s) <= 1;
    if (!grew) continue;
    if (parent) return std::nullopt;  // one of several
    parent = row.facts.job_id;
  }
  return parent;
}

/// What slurmctld has shown beyond the question: everything, or jobs that may be helpers, of which
/// slurmdbd's command line will tell.
void ask_for_shown(const Rows& live, RecordQuery& query) {
  std::set<std::int64_t> ids(query.job_ids.begin(), query.job_ids.end());
  std::set<std::string> clusters(query.clusters.begin(), query.clusters.end());
  for (const auto& row : live) {
    ids.insert(row.facts.job_id);
    clusters.insert(row.facts.cluster);
    // slurmctld shows the last submission of a requeued job: the rows before it are wanted too.
    const std::int64_t since_s = row.facts.submit_s.value_or(0) - kBeforeS;
    query.since_s = ids.size() == 1 ? since_s : std::min(query.since_s, since_s);
  }
  query.job_ids.assign(ids.begin(), ids.end());
  query.clusters.assign(clusters.begin(), clusters.end());
}

/// Whom each job helps, from either daemon. Only jobs that were not asked for are looked at.
std::map<JobKey, std::int64_t> helpers_of(const Rows& live, const Rows& kept,
                                          const std::set<JobKey>& asked) {
  std::map<JobKey, std::int64_t> parents;
  for (const Rows* rows : {&kept, &live}) {
    for (const auto& row : *rows) {
      if (row.facts.helper_of) parents.emplace(key_of(row.facts), *row.facts.helper_of);
    }
  }
  for (const auto& row : live) {
    if (!row.gave_away || !row.resize_s) continue;
    if (const Maybe parent = parent_of(row, live, asked)) {
      parents.emplace(key_of(row.facts), *parent);
    }
  }
  return parents;
}

/// The daemons answer by number: the same number in another cluster was not asked for, and a helper
/// of nobody's is not wanted. Writes down whom a helper helps.
void keep_wanted(Rows& rows, const std::map<JobKey, std::int64_t>& parents,
                 const std::set<JobKey>& asked) {
  std::erase_if(rows, [&](JobRow& row) {
    const JobKey key = key_of(row.facts);
    const auto parent = parents.find(key);
    if (parent != parents.end()) row.facts.helper_of = parent->second;
    if (asked.contains(key)) return false;
    return parent == parents.end() || !asked.contains({key.first, parent->second});
  });
}

/// slurmctld remembers ended jobs for MinJobAge: those that are settled are no news.
Status drop_settled(Database& db, Rows& live, const std::set<JobKey>& asked) {
  Status status = Done{};
  std::erase_if(live, [&](const JobRow& row) {
    if (!status || !row.facts.end_s || asked.contains(key_of(row.facts))) return false;
    auto settled = is_settled(db, row.facts);
    if (!settled) status = Error{settled.error()};
    return settled && *settled;
  });
  return status;
}

Answers answers_of(bool slurmctld, bool slurmdbd, const Rows& kept) {
  Answers answers{slurmctld, slurmdbd, {}};
  for (const auto& row : kept) {
    if (!row.facts.end_s) answers.unfinished.insert(key_of(row.facts));
  }
  return answers;
}

}  // namespace

Result<RecordOutcome> update_records(Database& cluster, RecordSource& source, std::int64_t now_ns,
                                     const RecordOptions& options) {
  const bool by_hand = options.poller == nullptr;
  auto open = open_jobs(cluster, by_hand ? Maybe() : Maybe(now_ns / kSecond));
  if (!open) return Error{open.error()};
  open->query.every_job = options.every_job;
  RecordOutcome outcome;
  Asking asking(options, now_ns);
  if (open->jobs.empty() && !options.every_job) {
    outcome.warnings = asking.warnings();
    return outcome;
  }
  Rows live, kept;
  const bool live_told = asking.due(Daemon::kSlurmctld) &&
                         asking.took(Daemon::kSlurmctld, source.from_slurmctld(open->query), live);
  if (auto dropped = drop_settled(cluster, live, open->jobs); !dropped) {
    return Error{dropped.error()};
  }
  ask_for_shown(live, open->query);
  const bool kept_told = !open->query.job_ids.empty() && asking.due(Daemon::kSlurmdbd) &&
                         asking.took(Daemon::kSlurmdbd, source.from_slurmdbd(open->query), kept);
  outcome.warnings = asking.warnings();
  for (auto& sentence : source.hidden()) outcome.warnings.push_back(std::move(sentence));
  if (live_told) {
    auto limits = update_partitions(cluster, source, now_ns);
    if (!limits) outcome.warnings.push_back("partitions: " + limits.error());
  }
  const auto parents = helpers_of(live, kept, open->jobs);
  std::set<JobKey> wanted = open->jobs;
  for (const auto& row : live) {
    if (options.every_job) wanted.insert(key_of(row.facts));
  }
  keep_wanted(live, parents, wanted);
  keep_wanted(kept, parents, wanted);
  const auto records = assemble_records(live, kept, open->witnesses);
  if (auto stored = store_records(cluster, records, now_ns); !stored) return Error{stored.error()};
  const Answers answers = answers_of(live_told, kept_told, kept);
  if (auto done = settle_jobs(cluster, *open, answers, now_ns / kSecond); !done) {
    return Error{done.error()};
  }
  outcome.jobs = static_cast<std::int64_t>(records.size());
  return outcome;
}

}  // namespace sphase
