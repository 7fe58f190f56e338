#include "spank/recorder/papi/papi_source.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace sphase {

PapiSource::PapiSource(std::string reason) { plan_.tier.reason = std::move(reason); }

PapiSource::PapiSource(PapiApi api, PapiPlan plan) : api_(std::move(api)), plan_(std::move(plan)) {
  if (!plan_.events.empty()) find_events();
}

/// The plan may come from a file: PAPI is asked for the codes in this process.
void PapiSource::find_events() {
  std::string why;
  int code = api_.library_init();
  if (code == kPapiOk && plan_.multiplexed) code = api_.multiplex_init();
  if (code != kPapiOk) why = "PAPI cannot be initialised: " + api_.error_text(code);
  for (std::size_t i = 0; why.empty() && i < plan_.events.size(); ++i) {
    int event = 0;
    code = api_.find_event(plan_.events[i], &event);
    if (code != kPapiOk) why = plan_.events[i] + ": " + api_.error_text(code);
    request_.events.push_back(event);
    request_.component = api_.component_of(event);
  }
  request_.multiplexed = plan_.multiplexed;
  if (why.empty()) return;
  plan_ = PapiPlan();
  plan_.tier.reason = why;
}

Status PapiSource::room_for_one() const {
  if (tasks_.size() >= kMostTasks) {
    return Error{"counters of at most " + std::to_string(kMostTasks) + " tasks on a node"};
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno_error("getrlimit");
  const std::size_t wanted = files_.size() + static_cast<std::size_t>(plan_.descriptors);
  if (limit.rlim_cur != RLIM_INFINITY && wanted > limit.rlim_cur / 2) {
    return Error{"no descriptors left for counters: " + std::to_string(wanted) +
                 " are more than half of RLIMIT_NOFILE (" + std::to_string(limit.rlim_cur) + ")"};
  }
  return Done{};
}

Status PapiSource::attach(std::uint32_t task, int pid) {
  if (plan_.events.empty()) return Error{plan_.tier.reason};
  if (tasks_.contains(task)) return Error{"task is counted already"};
  if (Status room = room_for_one(); !room) return room;
  auto set = std::make_unique<PapiSet>(api_);
  request_.pid = pid;
  const int code = set->open(request_);
  if (code != kPapiOk) return Error{"cannot attach PAPI: " + api_.error_text(code)};
  const auto descriptors = static_cast<std::size_t>(plan_.descriptors);
  set->find_files(descriptors, files_);
  if (set->files().size() != descriptors) return Error{"cannot attach PAPI: counters not found"};
  files_.insert(set->files().begin(), set->files().end());
  Task& added = tasks_[task];
  added.set = std::move(set);
  added.counts.resize(plan_.events.size());
  added.highest.resize(plan_.events.size(), 0);
  return Done{};
}

const std::vector<PapiCount>& PapiSource::read(std::uint32_t task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return none_;
  if (found->second.set) update(found->second);
  return found->second.counts;
}

void PapiSource::detach(std::uint32_t task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end() || !found->second.set) return;
  update(found->second);
  for (const int fd : found->second.set->files()) files_.erase(fd);
  found->second.set.reset();
}

void PapiSource::update(Task& task) {
  std::fill(task.counts.begin(), task.counts.end(), PapiCount());
  if (plan_.multiplexed) {
    read_multiplexed(task);
  } else {
    read_plain(task);
  }
}

/// PAPI scales multiplexed counts and keeps the times to itself: the descriptors are read instead,
/// one per event (events made of several counters are left out by the probe).
void PapiSource::read_multiplexed(Task& task) {
  for (std::size_t i = 0; i < task.counts.size() && i < task.set->files().size(); ++i) {
    const auto raw = task.set->read_file(i, true);
    if (!raw) continue;
    if (raw->time_running_ns > raw->time_enabled_ns || raw->time_enabled_ns > INT64_MAX) {
      ++bad_values_;
      continue;
    }
    PapiCount& count = task.counts[i];
    count.time_enabled_ns = static_cast<std::int64_t>(raw->time_enabled_ns);
    count.time_running_ns = static_cast<std::int64_t>(raw->time_running_ns);
    if (had_too_few_turns(*count.time_enabled_ns, *count.time_running_ns)) continue;
    count.value = checked(task, i, static_cast<std::int64_t>(raw->count));
  }
}

/// PAPI does not tell that the group could not run: its leader does.
void PapiSource::read_plain(Task& task) {
  if (!task.set->files().empty() && !task.set->read_file(0, false)) return;
  long long counts[kMostEvents] = {};
  if (task.set->read(counts) != kPapiOk) return;
  for (std::size_t i = 0; i < task.counts.size(); ++i) {
    task.counts[i].value = checked(task, i, counts[i]);
  }
}

std::optional<std::int64_t> PapiSource::checked(Task& task, std::size_t event, std::int64_t value) {
  if (value < task.highest[event]) {  // which is never negative
    ++bad_values_;
    return std::nullopt;
  }
  task.highest[event] = value;
  return value;
}

std::unique_ptr<PapiSource> open_papi_source(const std::string& asked, const std::string& run_dir) {
  if (asked == "off") return std::make_unique<PapiSource>("not asked for (events=off)");
  if (const auto none = kept_none(asked, run_dir)) {
    return std::make_unique<PapiSource>(none->tier.reason);
  }
  auto api = load_papi();
  if (!api) return std::make_unique<PapiSource>(api.error());
  PapiPlan plan = probe_papi_once(*api, asked, run_dir);
  return std::make_unique<PapiSource>(std::move(*api), std::move(plan));
}

}  // namespace sphase
