#include "collector/learn/advise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "collector/learn/memory_rule.h"
#include "collector/learn/reason.h"
#include "collector/learn/size_choice.h"

namespace sphase {
namespace {

using Runs = std::span<const ObservedJob>;

constexpr std::int64_t kNodesMost = 1'000'000;
constexpr std::size_t kRunsTested = 10;  // by which confidence is judged
constexpr double kSecondsMost = 1e9;

constexpr std::uint32_t kNoDuration = kObservedOom | kObservedTimeout | kObservedFailed;

const Observation* whole(const ObservedJob& run) {
  for (const auto& observation : run.phases) {
    if (observation.path.empty()) return &observation;
  }
  return nullptr;
}

bool has_duration(const Observation& observation) {
  return observation.duration_s > 0 && observation.duration_s <= kSecondsMost;
}

bool good(const Observation& observation) {
  return (observation.flags & kNoDuration) == 0 && has_duration(observation);
}

bool good(const ObservedJob& run) {
  const Observation* job = whole(run);
  return job != nullptr && good(*job);
}

/// Nodes that made a difference: further ones were idle, and time is taken to be the same without
/// them.
std::int64_t size_of(const Observation& observation) {
  return std::clamp<std::int64_t>(observation.nodes_used, 1, kNodesMost);
}

/// Every observation of one path, oldest first.
struct History {
  std::string path;
  std::vector<Observation> all;
  std::vector<TimePoint> points;  // of those whose duration counts
};

/// A phase that had ended before its job was killed or reached its limit bears no flag of that, and
/// is as good as any.
void add(const Observation& observation, History& history) {
  history.all.push_back(observation);
  if (good(observation)) {
    history.points.push_back({static_cast<double>(size_of(observation)), observation.duration_s});
  }
}

History history_of_job(Runs runs) {
  History history;
  for (const auto& run : runs) {
    if (const Observation* job = whole(run)) add(*job, history);
  }
  return history;
}

/// Paths in the order in which they begin: that of the newest run, into which those that only older
/// runs had are put behind what came before them there.
std::vector<std::string> paths_in_order(Runs runs) {
  std::vector<std::string> paths;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    auto behind = paths.begin();
    for (const auto& observation : run->phases) {
      if (observation.path.empty()) continue;
      auto found = std::find(paths.begin(), paths.end(), observation.path);
      if (found == paths.end()) found = paths.insert(behind, observation.path);
      behind = found + 1;
    }
  }
  return paths;
}

std::vector<History> histories_of_phases(Runs runs) {
  std::vector<History> histories;
  std::map<std::string, std::size_t> index;
  for (auto& path : paths_in_order(runs)) {
    index[path] = histories.size();
    histories.push_back({path, {}, {}});
  }
  for (const auto& run : runs) {
    for (const auto& observation : run.phases) {
      const auto found = index.find(observation.path);
      if (found != index.end()) add(observation, histories[found->second]);
    }
  }
  return histories;
}

/// Sizes at which the memory that is needed can be had; all of them if it is enough at none.
std::vector<std::int64_t> those_that_fit(std::vector<std::int64_t> sizes, const History& history,
                                         const SiteConfig& config, std::int64_t memory_most) {
  if (memory_most <= 0) return sizes;
  std::vector<std::int64_t> fit;
  for (const std::int64_t nodes : sizes) {
    if (memory_to_ask(history.all, nodes, config, 0).need_bytes <= memory_most) {
      fit.push_back(nodes);
    }
  }
  return fit.empty() ? sizes : fit;
}

double most_cpus_busy(const History& history) {
  double most = 0;
  for (const auto& observation : history.all) {
    const double busy = observation.cpus_busy.value_or(0);
    if (std::isfinite(busy)) most = std::max(most, busy);
  }
  return most;
}

std::int64_t least_nodes(const History& history) {
  std::int64_t least = kNodesMost;
  for (const auto& observation : history.all) least = std::min(least, size_of(observation));
  return least;
}

/// Fills in what does not depend on how the size is chosen.
PhaseAdvice begin_advice(const History& history) {
  PhaseAdvice advice;
  advice.path = history.path;
  advice.runs = static_cast<std::int64_t>(history.points.size());
  advice.cpus_busy = most_cpus_busy(history);
  advice.model = TimeModel::fit(history.points);
  return advice;
}

/// Chooses among `sizes` and says how much memory that takes. Memory is only known after as many
/// full peaks as the site wants runs, or after a kill for memory.
void choose(std::vector<std::int64_t> sizes, const History& history, const SiteConfig& config,
            const PartitionLimits& limits, PhaseAdvice& advice) {
  if (advice.model.known() && !sizes.empty()) {
    sizes = those_that_fit(std::move(sizes), history, config, limits.memory_most_bytes);
    advice.sizes = choices_at(advice.model, sizes);
    advice.best = best_of(advice.sizes, config.policy);
  }
  // Without a size of ours the user's counts: the smallest that was seen needs most.
  const std::int64_t nodes = advice.best.nodes > 0 ? advice.best.nodes : least_nodes(history);
  const auto memory = memory_to_ask(history.all, nodes, config, limits.memory_most_bytes);
  advice.memory_peak_bytes = memory.peak_bytes;
  if (memory.raised || memory.known >= config.runs_least) advice.memory_bytes = memory.bytes;
}

std::vector<std::int64_t> sizes_seen(const TimeModel& model) {
  if (!model.known()) return {};
  return sizes_between(static_cast<std::int64_t>(model.nodes_least()),
                       static_cast<std::int64_t>(model.nodes_most()));
}

/// A phase inside another one ("solve/assemble" where there is "solve") is learned with it: the
/// plan covers each second once.
void drop_nested(std::vector<PhaseAdvice>& phases) {
  std::set<std::string, std::less<>> paths;
  for (const auto& phase : phases) paths.insert(phase.path);
  std::erase_if(phases, [&](const PhaseAdvice& phase) {
    const std::string_view path = phase.path;
    for (auto slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
      if (paths.contains(path.substr(0, slash))) return true;
    }
    return false;
  });
}

std::vector<PhaseAdvice> advise_phases(Runs runs, const SiteConfig& config,
                                       const PartitionLimits& limits) {
  std::vector<PhaseAdvice> phases;
  for (const auto& history : histories_of_phases(runs)) {
    if (history.points.empty()) continue;  // nothing is known of its time
    PhaseAdvice advice = begin_advice(history);
    choose(sizes_seen(advice.model), history, config, limits, advice);
    phases.push_back(std::move(advice));
  }
  drop_nested(phases);
  return phases;
}

/// Keeps the phases that take longest, in their order.
void keep_longest(std::vector<PhaseAdvice>& phases) {
  if (phases.size() <= kAdvicePhasesMost) return;
  std::vector<double> times;
  times.reserve(phases.size());
  for (const auto& phase : phases) times.push_back(phase.best.time.expected);
  const auto last = times.begin() + kAdvicePhasesMost - 1;
  std::nth_element(times.begin(), last, times.end(), std::greater<>());
  const double least = *last;
  const auto longer = [&](const PhaseAdvice& p) { return p.best.time.expected > least; };
  auto ties = static_cast<std::ptrdiff_t>(kAdvicePhasesMost) -
              std::count_if(phases.begin(), phases.end(), longer);
  std::erase_if(phases, [&](const PhaseAdvice& phase) {
    return !longer(phase) && (phase.best.time.expected < least || ties-- <= 0);
  });
}

/// Sizes for the job as one: seen for it, not below what was seen for any of its phases, and what
/// the partition takes. Empty: there is none.
std::vector<std::int64_t> sizes_of_job(const History& history, const TimeModel& model,
                                       const std::vector<PhaseAdvice>& phases,
                                       const PartitionLimits& limits) {
  if (!model.known()) return {};
  const auto most = static_cast<std::int64_t>(model.nodes_most());
  auto least = static_cast<std::int64_t>(model.nodes_least());
  for (const auto& phase : phases) {
    least = std::max(least, static_cast<std::int64_t>(phase.model.nodes_least()));
  }
  least = std::min(least, most);
  const std::int64_t ceiling = limits.nodes_most > 0 ? std::min(most, limits.nodes_most) : most;
  if (limits.nodes_least <= most) {
    return sizes_between(std::max(least, limits.nodes_least), ceiling);
  }
  // The partition wants more nodes than were of use; as many as that must have been held before.
  std::int64_t held = 0;
  for (const auto& observation : history.all) held = std::max(held, observation.nodes);
  if (limits.nodes_least > held || limits.nodes_least > kNodesMost) return {};
  return sizes_between(limits.nodes_least, limits.nodes_least);
}

/// The longest good run with margin (T(n) is convex, so that no size between those seen takes
/// longer than both ends); after a run that reached its limit at least half as much again. 0 =
/// nothing is known.
std::int64_t time_limit(const History& history, const SiteConfig& config,
                        const PartitionLimits& limits) {
  double longest = 0, limit = 0;
  for (const auto& observation : history.all) {
    if (!has_duration(observation)) continue;
    if (good(observation)) longest = std::max(longest, observation.duration_s);
    if (observation.flags & kObservedTimeout) limit = std::max(limit, 1.5 * observation.duration_s);
  }
  if (longest > 0) {
    limit = std::max({limit, longest * (1 + config.time_margin_percent / 100.0), longest + 300});
  }
  const auto whole_s = static_cast<std::int64_t>(std::ceil(limit / 60)) * 60;
  return limits.time_most_s > 0 ? std::min(whole_s, limits.time_most_s) : whole_s;
}

RunCounts count(const History& history) {
  RunCounts counts;
  for (const auto& observation : history.all) {
    const bool killed = observation.flags & kObservedOom;
    const bool timeout = observation.flags & kObservedTimeout;
    if (killed) {
      ++counts.killed;
    } else if (timeout) {
      ++counts.timeouts;
    } else if (good(observation)) {
      ++counts.good;
    } else {
      ++counts.failed;
    }
  }
  return counts;
}

/// A raise is in force; whether the last run that was killed had asked for memory at all.
std::uint32_t flags_of_kill(const History& history) {
  const auto& all = history.all;
  const auto killed = std::find_if(all.rbegin(), all.rend(), [](const Observation& observation) {
    return (observation.flags & kObservedOom) != 0;
  });
  const bool unset = killed != all.rend() && (killed->flags & kObservedDefaultMemory) != 0;
  return kAdviceOom | (unset ? std::uint32_t{kAdviceDefaultMemory} : 0U);
}

/// Everything but the confidence.
ProfileAdvice advise_from(Runs runs, const SiteConfig& config, const PartitionLimits& limits) {
  const History history = history_of_job(runs);
  const RunCounts counts = count(history);
  ProfileAdvice advice;
  advice.runs = counts.good + counts.killed + counts.timeouts;
  advice.job = begin_advice(history);
  const bool raised = memory_to_ask(history.all, 1, config, 0).raised;
  if (raised) advice.flags |= flags_of_kill(history);
  if (counts.timeouts > 0) advice.flags |= kAdviceTimeout;
  const bool runs_enough = counts.good >= config.runs_least;
  advice.enough = runs_enough || raised;
  if (raised && !runs_enough) {  // memory, and nothing else
    advice.flags &= ~static_cast<std::uint32_t>(kAdviceTimeout);
    choose({}, history, config, limits, advice.job);
  } else {
    advice.phases = advise_phases(runs, config, limits);
    choose(sizes_of_job(history, advice.job.model, advice.phases, limits), history, config, limits,
           advice.job);
    keep_longest(advice.phases);
    if (advice.job.model.has_shape()) advice.flags |= kAdviceModel;
    advice.time_limit_s = time_limit(history, config, limits);
  }
  advice.reason = reason_of(advice, counts, history.all, config);
  return advice;
}

/// Would the advice made from the runs before it have been enough for `run`? nullopt: there was
/// none, or not for time.
std::optional<bool> covered(Runs before, const Observation& run, const SiteConfig& config,
                            const PartitionLimits& limits) {
  const ProfileAdvice advice = advise_from(before, config, limits);
  if (!advice.enough || advice.time_limit_s == 0) return std::nullopt;
  if (run.duration_s > static_cast<double>(advice.time_limit_s)) return false;
  if (!run.memory_peak_bytes || advice.job.memory_bytes == 0) return true;
  const auto memory =
      memory_to_ask(history_of_job(before).all, size_of(run), config, limits.memory_most_bytes);
  return *run.memory_peak_bytes <= memory.bytes;
}

/// Leave-future-out: each of the last good runs against what was known before it.
double confidence(Runs runs, const SiteConfig& config, const PartitionLimits& limits) {
  std::size_t tested = 0, fitted = 0, looked_at = 0;
  for (std::size_t i = runs.size(); i-- > 0 && looked_at < kRunsTested;) {
    if (!good(runs[i])) continue;
    ++looked_at;
    const auto fits = covered(runs.first(i), *whole(runs[i]), config, limits);
    if (!fits) continue;
    ++tested;
    fitted += *fits ? 1 : 0;
  }
  return tested > 0 ? static_cast<double>(fitted) / static_cast<double>(tested) : 0;
}

}  // namespace

ProfileAdvice advise(const std::vector<ObservedJob>& runs, const SiteConfig& config,
                     const PartitionLimits& limits) {
  ProfileAdvice advice = advise_from(runs, config, limits);
  if (advice.enough) advice.confidence = confidence(runs, config, limits);
  return advice;
}

}  // namespace sphase
