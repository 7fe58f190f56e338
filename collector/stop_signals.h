// How a daemon is told to stop.
#pragma once

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "common/clock.h"

namespace sphase {

/// SIGTERM and SIGINT, kept back until they are asked for: no step is cut short. Threads that are
/// made later inherit the mask.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    sigprocmask(SIG_BLOCK, &set_, nullptr);
  }
  /// True if one has come by now.
  bool came() { return wait(0); }
  /// Waits for one, at most so long.
  bool wait(std::int64_t seconds) {
    if (came_) return true;
    const std::int64_t until = monotonic_ns() + seconds * 1'000'000'000;
    do {
      const std::int64_t left = std::max<std::int64_t>(0, until - monotonic_ns());
      const timespec time{left / 1'000'000'000, left % 1'000'000'000};
      // Another signal (a debugger's, SIGCONT) ends the call early.
      came_ = sigtimedwait(&set_, nullptr, &time) > 0;
    } while (!came_ && monotonic_ns() < until);
    return came_;
  }

 private:
  sigset_t set_{};
  bool came_ = false;
};

}  // namespace sphase
