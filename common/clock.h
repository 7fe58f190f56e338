// The two clocks of a node. Markers carry CLOCK_MONOTONIC; databases carry ns since the epoch.
#pragma once

#include <time.h>

#include <cstdint>

namespace sphase {

/// Unit: ns. Source: clock_gettime(2). Cost: about 25 ns.
inline std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
inline std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
inline std::int64_t epoch_ns() { return clock_ns(CLOCK_REALTIME); }

/// How often the kernel adds the CPU time of a running thread to its cgroup. Unit: ns.
/// Source: the coarse clocks advance at the scheduler tick (1 / CONFIG_HZ).
inline std::int64_t tick_ns() {
  timespec resolution{};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &resolution) != 0) return 10'000'000;
  return static_cast<std::int64_t>(resolution.tv_sec) * 1'000'000'000 + resolution.tv_nsec;
}

}  // namespace sphase
