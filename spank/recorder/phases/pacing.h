// When the edge thread may sleep on the bell and when it must only look now and then.
//
// Every marker of a quiet program wakes us at once, so its edge is read within microseconds. A
// program that marks hundreds of times a second would make us run as often, mostly on a CPU that it
// needs itself; then we look at the ring at intervals instead, and the counters of edges in between
// are interpolated. Looks that find few markers take a fiftieth of one CPU at most, since a program
// that marks a thousand times a second must not notice; with many a tenth, so that few are lost.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sphase {

class Pacing {
 public:
  /// After a drain that took `took_ns` of its thread's CPU time (not of wall time: while the
  /// program runs on the CPU we want, we cost it nothing) and found `records`. Unit: ns to stay
  /// away from the ring before sleeping on the bell again; 0: sleep on the bell.
  std::int64_t pause_ns(std::int64_t now_ns, std::int64_t took_ns, std::uint32_t records) {
    refill(now_ns);
    if (records == 0) return 0;
    const double cost = std::max(1.0, static_cast<double>(took_ns) / kWakeNs);
    wakes_ -= records < kFew ? std::min(cost, kFewMost) * kFewFactor : cost;
    if (wakes_ >= 0) return 0;
    const auto pause_ns = static_cast<std::int64_t>(-wakes_ / kWakesPerSecond * 1e9);
    wakes_ = std::max(wakes_, -kWakesPerSecond * static_cast<double>(kLongestNs) / 1e9);
    return std::clamp(pause_ns, kShortestNs, kLongestNs);
  }
  /// Records are being read in bulk: their counters are not exact at the edge.
  bool hot() const { return wakes_ < 1; }

  static constexpr double kWakesPerSecond = 2000;
  static constexpr double kWakeNs = 50'000;  // a look that takes longer counts as several: all of
                                             // them together take at most a tenth of one CPU
  static constexpr std::uint32_t kFew = 32;  // records; 25 ms of a thousand markers a second
  static constexpr double kFewFactor = 5;    // so many looks does one count for that found few
  static constexpr double kFewMost = 20;     // 1 ms: longer was the machine's doing, not ours, and
                                             // must not make the next edges inexact
  static constexpr double kBurst = 500;
  static constexpr std::int64_t kShortestNs = 100'000;
  static constexpr std::int64_t kLongestNs = 25'000'000;  // the ring must not run over meanwhile

 private:
  void refill(std::int64_t now_ns) {
    if (last_ns_ != 0) {
      const double seconds = static_cast<double>(now_ns - last_ns_) / 1e9;
      wakes_ = std::min(kBurst, wakes_ + seconds * kWakesPerSecond);
    }
    last_ns_ = now_ns;
  }
  double wakes_ = kBurst;
  std::int64_t last_ns_ = 0;
};

}  // namespace sphase
