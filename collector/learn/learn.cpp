#include "collector/learn/learn.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "collector/file_lock.h"
#include "collector/learn/advice_table.h"
#include "collector/learn/learn_store.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kExpiredKeptS = 30 * 86400;
constexpr std::size_t kProblemsTold = 20;

using Entries = std::map<std::string, Advice>;

class Learner {
 public:
  Learner(Database& db, const SiteConfig& config, const LearnOptions& options, std::int64_t now_ns)
      : db_(db), config_(config), options_(options), now_ns_(now_ns) {}

  Result<LearnOutcome> run();

 private:
  Status observe_news();
  Result<std::int64_t> observe_batch(std::int64_t most);
  Status observe_job(const JobNumber& job);
  Status save(const JobNumber& job, const std::vector<Timeline>& starts);
  void read_table();
  Status advise_profiles(const std::vector<std::string>& profiles);
  Status advise_profile(const std::string& profile);
  Status write_table();

  Database& db_;
  const SiteConfig& config_;
  const LearnOptions& options_;
  std::int64_t now_ns_;
  bool all_ = false;
  Entries entries_;
  LearnOutcome outcome_;
};

Status Learner::save(const JobNumber& job, const std::vector<Timeline>& starts) {
  // Anew as a whole: a start that got its record since has another identity.
  if (auto cleared = clear_observed(db_, job); !cleared) return cleared;
  for (const auto& start : starts) {
    const auto whose = profile_of(start);
    auto seen = whose ? observe(start, whose->profile, whose->nodes_asked) : std::nullopt;
    if (!seen) {
      ++outcome_.skipped;
      continue;
    }
    if (whose->memory_unset) seen->phases.front().flags |= kObservedDefaultMemory;
    if (auto saved = save_observed(db_, *seen, now_ns_); !saved) return saved;
    ++outcome_.observed;
  }
  return forget_news(db_, job);
}

Status Learner::observe_job(const JobNumber& job) {
  JobSelector selector;
  selector.cluster = job.cluster;
  selector.job_id = job.job_id;
  selector.every = selector.exact = true;
  auto starts = load_timelines(db_, selector);
  if (!starts) {
    // It would fail again in each round; it comes back when there is news.
    if (outcome_.problems.size() < kProblemsTold) outcome_.problems.push_back(starts.error());
    return forget_news(db_, job);
  }
  return save(job, *starts);
}

/// Reading and writing are one transaction, so that news which come meanwhile are not lost.
Result<std::int64_t> Learner::observe_batch(std::int64_t most) {
  auto transaction = Transaction::begin(db_);
  if (!transaction) return Error{transaction.error()};
  auto jobs = jobs_to_learn(db_, now_ns_, most);
  if (!jobs) return Error{jobs.error()};
  for (const auto& job : *jobs) {
    if (auto done = observe_job(job); !done) return Error{done.error()};
  }
  if (auto done = transaction->commit(); !done) return Error{done.error()};
  return static_cast<std::int64_t>(jobs->size());
}

Status Learner::observe_news() {
  while (outcome_.jobs < options_.jobs_most) {
    auto count = observe_batch(std::min(kBatch, options_.jobs_most - outcome_.jobs));
    if (!count) return Error{count.error()};
    if (*count == 0) return Done{};
    outcome_.jobs += *count;
  }
  auto rest = jobs_to_learn(db_, now_ns_, 1);
  if (!rest) return Error{rest.error()};
  outcome_.more = !rest->empty();
  return Done{};
}

void Learner::read_table() {
  struct stat found {};
  const bool missing = ::stat(options_.table.c_str(), &found) != 0 && errno == ENOENT;
  all_ = options_.all || missing;
  if (all_) return;
  auto table = read_advice_table(options_.table);
  if (!table) {
    outcome_.problems.push_back(table.error() + ": all advice is made anew");
    all_ = true;
    return;
  }
  const std::int64_t oldest_s = now_ns_ / kSecond - kExpiredKeptS;
  for (auto& [key, advice] : *table) {
    if (advice.head.expires_s >= oldest_s) entries_.emplace(key, advice);
  }
}

Status Learner::advise_profile(const std::string& profile) {
  auto runs = load_observed(db_, profile);
  if (!runs) return Error{runs.error()};
  entries_.erase(profile);
  ++outcome_.profiles;
  if (runs->empty()) return Done{};
  auto limits = load_partition_limits(db_, runs->back().cluster, runs->back().partition);
  if (!limits) return Error{limits.error()};
  const ProfileAdvice advice = advise(*runs, config_, *limits);
  if (!advice.enough) return Done{};
  entries_.emplace(profile, pack(advice, *runs, config_, now_ns_ / kSecond));
  ++outcome_.advised;
  return Done{};
}

Status Learner::advise_profiles(const std::vector<std::string>& profiles) {
  for (const auto& profile : profiles) {
    if (auto done = advise_profile(profile); !done) return done;
  }
  return Done{};
}

Status Learner::write_table() {
  const std::vector<AdviceEntry> entries(entries_.begin(), entries_.end());
  if (auto written = write_advice_table(options_.table, entries); !written) return written;
  outcome_.entries = static_cast<std::int64_t>(entries.size());
  return Done{};
}

Result<LearnOutcome> Learner::run() {
  if (auto observed = observe_news(); !observed) return Error{observed.error()};
  read_table();
  auto touched = touched_profiles(db_);
  if (!touched) return Error{touched.error()};
  auto profiles = all_ ? all_profiles(db_) : touched;
  if (!profiles) return Error{profiles.error()};
  outcome_.entries = -1;
  if (!all_ && profiles->empty()) return outcome_;
  if (auto done = advise_profiles(*profiles); !done) return Error{done.error()};
  if (auto done = write_table(); !done) return Error{done.error()};
  if (auto done = clear_touched(db_, *touched); !done) return Error{done.error()};
  return outcome_;
}

}  // namespace

Result<LearnOutcome> learn(Database& db, const SiteConfig& config, const LearnOptions& options,
                           std::int64_t now_ns) {
  const char* file = sqlite3_db_filename(db.raw(), "main");
  const std::string path = file != nullptr ? file : "";
  // Two at once would each write a table without the other's news.
  std::optional<FileLock> lock;
  if (!path.empty()) {
    auto taken = FileLock::take(path + ".learn", options.lock_wait_ms);
    if (!taken) return Error{taken.error()};
    lock.emplace(std::move(*taken));
  }
  return Learner(db, config, options, now_ns).run();
}

std::string sentence_of(const LearnOutcome& outcome) {
  std::string sentence = fmt::format(
      "{} jobs with news, {} starts observed, {} skipped; advice of {} profiles made anew, {} have "
      "enough runs; ",
      outcome.jobs, outcome.observed, outcome.skipped, outcome.profiles, outcome.advised);
  sentence += outcome.entries < 0 ? "the table is as it was"
                                  : fmt::format("{} in the table", outcome.entries);
  return outcome.more ? sentence + "; more jobs wait: run it again" : sentence;
}

bool older_than(const std::string& table, const std::string& conf) {
  struct stat written {
  }, changed{};
  if (::stat(table.c_str(), &written) != 0) return true;
  if (::stat(conf.c_str(), &changed) != 0) return false;
  const auto time_of = [](const struct stat& file) {
    return file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
  };
  return time_of(changed) > time_of(written);
}

}  // namespace sphase
