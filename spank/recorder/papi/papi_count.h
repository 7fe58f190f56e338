// A counted event: a plain value between PAPI, phases and store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace sphase {

/// One event of one task, since it was attached. Only grows; 0 is a count, "not known" is nullopt.
///
/// Multiplexed events take turns and have times: in a phase the event happened about
/// Δvalue · Δtime_enabled / Δtime_running times. `value` itself is what was seen, never scaled up:
/// a scaled count can go down. It is nullopt where the event had its turn in less than 1 % of the
/// time.
struct PapiCount {
  std::optional<std::int64_t> value{};
  std::optional<std::int64_t> time_enabled_ns{};  // CPU time of the task, all threads added
  std::optional<std::int64_t> time_running_ns{};  // the part of it in which the event was counted
};

/// True if an event had too few turns for its count to say anything.
inline bool had_too_few_turns(std::int64_t enabled_ns, std::int64_t running_ns) {
  return running_ns < enabled_ns / 100;
}

/// Of one task, in the order of the run's events. Null: none.
using PapiCounts = std::shared_ptr<const std::vector<PapiCount>>;

}  // namespace sphase
