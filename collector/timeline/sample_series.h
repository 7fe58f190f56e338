// The samples of one run, and what they say about a moment or an interval.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sphase {

using Maybe = std::optional<std::int64_t>;

struct Sample {
  std::int64_t time_ns = 0;
  Maybe cpu_time_ns;   // monotonic
  Maybe memory_bytes;  // gauge; without page cache where that is known: see memory_used
  Maybe io_read_bytes, io_write_bytes, io_read_call_bytes, io_write_call_bytes;  // monotonic

  bool operator==(const Sample&) const = default;
};

/// Memory that counts against a limit and cannot simply be dropped: anon + shmem + kernel; where
/// these are not known, current - file, or current. Unit: B.
Maybe memory_used(const Maybe& anon, const Maybe& shmem, const Maybe& kernel, const Maybe& current,
                  const Maybe& file);

/// A counter at a moment, or its increase over an interval.
struct Reading {
  Maybe value;
  bool exact = true;  // false: computed from two samples around the moment
};

class SampleSeries {
 public:
  using Counter = Maybe Sample::*;

  /// Samples this close to a moment were taken at it.
  static constexpr std::int64_t kSameMomentNs = 2'000'000;
  /// The kernel adds CPU time to a cgroup this often (HZ = 250): less than that is no movement.
  static constexpr std::int64_t kKernelTickNs = 4'000'000;

  SampleSeries() = default;
  /// `samples` sorted by time.
  explicit SampleSeries(std::vector<Sample> samples);

  /// Linear between the two samples around `time_ns` that know the counter. Before the first sample
  /// its value (the step had just begun), after the last one that one's value (the step has ended,
  /// or nothing more is known of it, which the caller has to say).
  Reading at(Counter counter, std::int64_t time_ns) const;

  /// Increase of a monotonic counter. Never negative.
  Reading increase(Counter counter, std::int64_t begin_ns, std::int64_t end_ns) const;

  /// Largest memory_bytes seen in the interval, its edges included. A lower bound.
  Maybe memory_peak(std::int64_t begin_ns, std::int64_t end_ns) const;

  const std::vector<Sample>& samples() const { return samples_; }

 private:
  bool knows(Counter counter) const;

  std::vector<Sample> samples_;
  std::vector<Counter> known_;  // counters that at least one sample has
};

}  // namespace sphase
