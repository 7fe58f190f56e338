// Events counted by PAPI, summed over tasks, and what they say together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/timeline/sample_series.h"

namespace sphase {

/// A row of table `counter`: one event of one task in one phase.
struct Counted {
  std::string event;  // PAPI's name
  Maybe value, time_enabled_ns, time_running_ns;
};

/// Sums over tasks (parts). A task that knows nothing of an event counts as a part all the same, so
/// that a sum of some of them can be told from a sum of all. Ratios are given only where both of
/// their events were counted in the same number of tasks.
class EventCounts {
 public:
  struct Event {
    std::string name;
    double count = 0;
    std::int64_t parts = 0;  // tasks that knew it
    bool scaled = false;     // it took turns with others: count is an estimate
  };

  /// What one task counted; empty: nothing is known of it.
  void add_part(const std::vector<Counted>& counted);
  void add(const EventCounts& more);

  const std::vector<Event>& events() const { return events_; }  // by name
  bool empty() const { return events_.empty(); }
  /// Some tasks knew nothing of some event.
  bool partial() const;
  bool scaled() const;

  /// nullopt: no task knew it.
  std::optional<double> count(std::string_view name) const;
  /// PAPI_TOT_INS and PAPI_TOT_CYC.
  std::optional<double> instructions() const;
  std::optional<double> instructions_per_cycle() const;
  /// Last-level cache misses (PAPI_L3_TCM, else perf::CACHE-MISSES) per 1000 instructions.
  std::optional<double> misses_per_kilo_instruction() const;
  /// Floating-point operations (PAPI_FP_OPS, else PAPI_DP_OPS) per ns of `time_ns`.
  std::optional<double> gflops(std::int64_t time_ns) const;

 private:
  const Event* find(std::string_view name) const;
  const Event* first_of(std::string_view name, std::string_view otherwise) const;
  Event& at(const std::string& name);

  std::vector<Event> events_;
  std::int64_t parts_ = 0;
};

}  // namespace sphase
