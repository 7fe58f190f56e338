#include "collector/timeline/sample_series.h"

#include <algorithm>
#include <cmath>

namespace sphase {
namespace {

std::int64_t between(std::int64_t from, std::int64_t to, double part) {
  return from + std::llround(static_cast<double>(to - from) * part);
}

bool before(const Sample& sample, std::int64_t time_ns) { return sample.time_ns < time_ns; }

}  // namespace

Maybe memory_used(const Maybe& anon, const Maybe& shmem, const Maybe& kernel, const Maybe& current,
                  const Maybe& file) {
  if (anon) return *anon + shmem.value_or(0) + kernel.value_or(0);
  if (current && file) return std::max<std::int64_t>(0, *current - *file);
  return current;
}

SampleSeries::SampleSeries(std::vector<Sample> samples) : samples_(std::move(samples)) {
  for (const Counter counter :
       {&Sample::cpu_time_ns, &Sample::memory_bytes, &Sample::io_read_bytes,
        &Sample::io_write_bytes, &Sample::io_read_call_bytes, &Sample::io_write_call_bytes}) {
    if (std::any_of(samples_.begin(), samples_.end(),
                    [&](const Sample& sample) { return (sample.*counter).has_value(); })) {
      known_.push_back(counter);
    }
  }
}

bool SampleSeries::knows(Counter counter) const {
  return std::find(known_.begin(), known_.end(), counter) != known_.end();
}

Reading SampleSeries::at(Counter counter, std::int64_t time_ns) const {
  if (!knows(counter)) return {std::nullopt, true};
  const auto middle = std::lower_bound(samples_.begin(), samples_.end(), time_ns, before);
  auto after = middle;
  while (after != samples_.end() && !((*after).*counter)) ++after;
  auto earlier = middle;
  while (earlier != samples_.begin() && !((*(earlier - 1)).*counter)) --earlier;
  const bool has_after = after != samples_.end();
  const bool has_earlier = earlier != samples_.begin();
  if (!has_earlier) return {(*after).*counter, true};
  const Sample& left = *(earlier - 1);
  const std::int64_t left_gap = time_ns - left.time_ns;
  if (!has_after) return {left.*counter, true};
  const Sample& right = *after;
  const std::int64_t right_gap = right.time_ns - time_ns;
  const Sample& nearest = left_gap < right_gap ? left : right;
  if (std::min(left_gap, right_gap) <= kSameMomentNs) return {nearest.*counter, true};
  const double part = static_cast<double>(left_gap) / static_cast<double>(left_gap + right_gap);
  const std::int64_t from = *(left.*counter), to = *(right.*counter);
  // No more than the kernel itself resolves: where it happened does not matter.
  const std::int64_t tolerance = counter == &Sample::cpu_time_ns ? kKernelTickNs : 0;
  return {between(from, to, part), std::abs(to - from) <= tolerance};
}

Reading SampleSeries::increase(Counter counter, std::int64_t begin_ns, std::int64_t end_ns) const {
  const Reading first = at(counter, begin_ns);
  const Reading last = at(counter, end_ns);
  if (!first.value || !last.value) return {std::nullopt, true};
  return {std::max<std::int64_t>(0, *last.value - *first.value), first.exact && last.exact};
}

Maybe SampleSeries::memory_peak(std::int64_t begin_ns, std::int64_t end_ns) const {
  Maybe peak;
  auto consider = [&](const Maybe& value) {
    if (value && (!peak || *value > *peak)) peak = value;
  };
  for (auto it = std::lower_bound(samples_.begin(), samples_.end(), begin_ns, before);
       it != samples_.end() && it->time_ns <= end_ns; ++it) {
    consider(it->memory_bytes);
  }
  consider(at(&Sample::memory_bytes, begin_ns).value);
  consider(at(&Sample::memory_bytes, end_ns).value);
  return peak;
}

}  // namespace sphase
