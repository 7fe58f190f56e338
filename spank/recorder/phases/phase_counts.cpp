#include <algorithm>

#include "spank/recorder/phases/phase_row.h"

namespace sphase {
namespace {

using Maybe = std::optional<std::int64_t>;

/// nullopt where either end is not known, or where it went backwards.
Maybe difference(const Maybe& begin, const Maybe& end) {
  if (!begin || !end || *end < *begin) return std::nullopt;
  return *end - *begin;
}

PapiCount between(const PapiCount& begin, const PapiCount& end) {
  PapiCount count;
  count.value = difference(begin.value, end.value);
  count.time_enabled_ns = difference(begin.time_enabled_ns, end.time_enabled_ns);
  count.time_running_ns = difference(begin.time_running_ns, end.time_running_ns);
  if (count.time_enabled_ns && count.time_running_ns &&
      had_too_few_turns(*count.time_enabled_ns, *count.time_running_ns)) {
    count.value.reset();
  }
  return count;
}

void scale(Maybe& number, double share) {
  if (number) number = static_cast<std::int64_t>(static_cast<double>(*number) * share);
}

}  // namespace

std::vector<PapiCount> counts_between(const Edge& begin, const Edge& end) {
  std::vector<PapiCount> counts;
  if (!end.counts) return counts;
  counts.resize(end.counts->size());
  if (!begin.counts) return counts;  // not counted from the start on: not known
  for (std::size_t i = 0; i < std::min(counts.size(), begin.counts->size()); ++i) {
    counts[i] = between((*begin.counts)[i], (*end.counts)[i]);
  }
  return counts;
}

std::vector<PapiCount> part_of(std::vector<PapiCount> counts, double share) {
  for (PapiCount& count : counts) {
    scale(count.value, share);
    scale(count.time_enabled_ns, share);
    scale(count.time_running_ns, share);
  }
  return counts;
}

}  // namespace sphase
