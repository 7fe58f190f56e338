// How much memory to ask for on each node.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/learn/observation.h"
#include "common/site_config.h"

namespace sphase {

/// Unit: bytes per node; 0 = not known.
struct MemoryAdvice {
  std::int64_t bytes = 0;       // to ask for
  std::int64_t need_bytes = 0;  // the same, were no node too small
  std::int64_t peak_bytes = 0;  // highest peak seen at any size
  std::int64_t known = 0;       // good runs whose peak is known of every node
  bool raised = false;          // a run was killed for memory, and too few were good since
};

/// From the observations of one path, oldest first, for a size of `nodes`:
/// - the highest peak seen, and the site's margin. One that was seen on more nodes than `nodes` is
///   scaled up by their ratio: data that is spread over nodes comes to that, what every node holds
///   to less, so it is an upper bound.
/// - after a kill for memory at least 1.5 times what that run was given and 100 MiB more than it,
///   until three good runs after it have shown what they need.
/// - rounded up to 16 MiB; at most `memory_most_bytes` (0 = no limit known), so that a job is never
///   refused because of us.
/// Peaks of runs that failed, or that some nodes told nothing of, are lower bounds: they raise the
/// result, but are not in `known`.
MemoryAdvice memory_to_ask(const std::vector<Observation>& observations, std::int64_t nodes,
                           const SiteConfig& config, std::int64_t memory_most_bytes);

}  // namespace sphase
