// Sets of times.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sphase {

using Interval = std::pair<std::int64_t, std::int64_t>;  // begin, end

/// Sorted, overlapping ones joined, empty ones dropped.
std::vector<Interval> unite(std::vector<Interval> intervals);

/// Sum of the lengths.
std::int64_t total_length(const std::vector<Interval>& united);

/// What of `whole` lies in none of `united`.
std::vector<Interval> complement(Interval whole, const std::vector<Interval>& united);

}  // namespace sphase
