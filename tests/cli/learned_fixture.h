// A profile with runs that are easy to reckon with.
#pragma once

#include <string>
#include <vector>

#include "cli/learned.h"

namespace sphase::testing {

inline Observation seen(const std::string& path, std::int64_t nodes, std::int64_t used,
                        double seconds, std::uint32_t flags = 0) {
  Observation observation;
  observation.path = path;
  observation.nodes = nodes;
  observation.nodes_used = used;
  observation.duration_s = seconds;
  observation.cpus_busy = 2.0;
  observation.memory_peak_bytes = 1000LL << 20;
  observation.memory_limit_bytes = 4000LL << 20;
  observation.flags = flags;
  return observation;
}

/// 4 nodes asked for, 1 used, 100 s of which 60 in `solve`, which ended `ago_s` before 1764536000.
inline ObservedJob run_of(std::int64_t job_id, std::int64_t ago_s = 1000, std::uint32_t flags = 0) {
  ObservedJob run;
  run.profile = "1001/solver";
  run.cluster = "c1";
  run.job_id = job_id;
  run.end_s = 1764536000 - ago_s;
  run.submit_s = run.start_s = run.end_s - 100;
  run.name = "solver";
  run.partition = "batch";
  run.nodes_asked = 4;
  run.phases = {seen("", 4, 1, 100, flags), seen("read", 4, 1, 40, flags),
                seen("solve", 4, 1, 60, flags)};
  return run;
}

inline Learned learned_of(std::vector<ObservedJob> runs) {
  Learned learned;
  learned.profile = "1001/solver";
  learned.advice = advise(runs, SiteConfig(), {});
  learned.packed = pack(learned.advice, runs, SiteConfig(), 1764536000);
  learned.runs = std::move(runs);
  return learned;
}

}  // namespace sphase::testing
