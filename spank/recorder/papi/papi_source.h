// Hardware counters of each task of a step, by PAPI: from before the task runs its program until it
// ends, with all its threads and children, in user mode.
//
// Threads: one at a time, any of them, as for Sampler: the caller holds a lock. Counters are bound
// to the task, so one thread may attach and another read (tried with PAPI 7.0, and tested).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "spank/recorder/papi/papi_count.h"
#include "spank/recorder/papi/papi_probe.h"
#include "spank/recorder/papi/papi_set.h"

namespace sphase {

class PapiSource {
 public:
  static constexpr std::size_t kMostTasks = 1024;

  /// No counters, because of `reason`.
  explicit PapiSource(std::string reason);
  /// Cost: 1.5 to 2 ms if there are events (PAPI_library_init), else none.
  PapiSource(PapiApi api, PapiPlan plan);
  PapiSource(const PapiSource&) = delete;
  PapiSource& operator=(const PapiSource&) = delete;

  /// Counts a task that exists but has not run its program. Error: why this task has no counters.
  /// At most kMostTasks in all, and all descriptors together at most half of RLIMIT_NOFILE.
  /// Cost: 0.12 ms with 2 events, 0.19 ms with 4, and 0.12 MB of memory; 0.5 ms for the first.
  Status attach(std::uint32_t task, int pid);

  /// The task's counts, in the order of names(). After detach(): the last ones. Empty: none.
  /// A value that is negative, or below the one before, is no value.
  /// Cost: 2 µs with 2 events, 3.5 µs with 4 (1.4 and 2.3 µs when read again at once). Measured on
  /// software events; a hardware counter of a running task is read on its own CPU, a µs or so more.
  const std::vector<PapiCount>& read(std::uint32_t task);

  /// The task was reaped: its counts (complete: a perf event outlives its task) are kept.
  void detach(std::uint32_t task);

  /// What is counted; empty where nothing is. Fixed for the run.
  const std::vector<std::string>& names() const { return plan_.events; }
  Tier tier() const { return plan_.tier; }
  bool multiplexed() const { return plan_.multiplexed; }
  /// Values that were no values: negative, or going down.
  std::int64_t bad_values() const { return bad_values_; }

 private:
  struct Task {
    std::unique_ptr<PapiSet> set;       // none once detached
    std::vector<PapiCount> counts;      // the last reading
    std::vector<std::int64_t> highest;  // per event, the last good value
  };
  void find_events();
  Status room_for_one() const;
  void update(Task& task);
  void read_multiplexed(Task& task);
  void read_plain(Task& task);
  std::optional<std::int64_t> checked(Task& task, std::size_t event, std::int64_t value);

  PapiApi api_;
  PapiPlan plan_;
  PapiSet::Request request_;
  std::map<std::uint32_t, Task> tasks_;
  std::set<int> files_;  // of all tasks attached
  std::int64_t bad_values_ = 0;
  const std::vector<PapiCount> none_;
};

/// All of it: loads PAPI, asks the node (or what is kept in `run_dir`), and is ready to attach.
/// `asked`: see PapiWish; "off": nothing is counted. Never fails; tier() says what there is.
std::unique_ptr<PapiSource> open_papi_source(const std::string& asked, const std::string& run_dir);

}  // namespace sphase
