// How far a node's clock is from the collector's, from exchanges of time stamps.
//
// Source: RFC 5905 (NTP version 4), sections 8 and 10: offset, delay, and the choice of the
// exchange with the least delay among the last eight.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "collector/wire/message.h"

namespace sphase {

class ClockFilter {
 public:
  /// `times` as the collector answered; `back_ns`: when the answer came, our wall clock; `now_ns`:
  /// that moment on CLOCK_MONOTONIC. One in which time ran backwards, or whose times no clock
  /// shows, says nothing and is left out.
  void add(const ClockTimes& times, std::int64_t back_ns, std::int64_t now_ns);

  /// Ours minus the collector's, of the best exchange; the band grows with its age. nullopt: there
  /// was none yet.
  std::optional<ClockOffset> best(std::int64_t now_ns) const;

  static constexpr std::size_t kKept = 8;
  static constexpr std::int64_t kDriftPerMillion = 50;  // of a quartz that nobody steers
  /// A clock that was stepped by more than all bands makes earlier exchanges worthless.
  static constexpr std::int64_t kOldestNs = 900'000'000'000;

 private:
  struct Exchange {
    std::int64_t offset_ns, delay_ns, time_ns;  // when it was asked; monotonic
  };
  static std::int64_t band(const Exchange& exchange, std::int64_t now_ns);

  std::deque<Exchange> kept_;
};

}  // namespace sphase
