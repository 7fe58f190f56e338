// What is not known about a job, and why: a sentence each.
#pragma once

#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// From notices, from counters of what was dropped, and deduced from nodes that should have told
/// something and did not. Uses everything of the timeline but `rows` and `missing`.
std::vector<std::string> find_missing(const Timeline& timeline);

}  // namespace sphase
