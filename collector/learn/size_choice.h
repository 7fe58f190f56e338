// Which number of nodes is the best one.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/learn/advise.h"

namespace sphase {

/// Whole sizes from `least` to `most`, both included, ascending; of a range of more than 1024 an
/// even choice. Empty if least > most.
std::vector<std::int64_t> sizes_between(std::int64_t least, std::int64_t most);

/// What `model` expects at each of `sizes`. The efficiency is 0 (not known) where the model has no
/// shape.
std::vector<SizeChoice> choices_at(const TimeModel& model, const std::vector<std::int64_t>& sizes);

/// The best of `choices` (ascending, not empty):
/// - efficiency: the largest size that reaches it; the smallest if none does;
/// - least time: of those within 2 % of it the one with fewest nodes;
/// - least cost n T(n): of equal ones the one with fewest nodes.
SizeChoice best_of(const std::vector<SizeChoice>& choices, const Policy& policy);

}  // namespace sphase
