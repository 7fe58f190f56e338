// What is drawn in the lanes: a bar per phase and run, with the row that it has in its lane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// One phase of one run, merged over its tasks as in the phase table; or many that lie closer
/// together than could be seen.
struct Bar {
  std::string path;
  bool shell = false;
  std::int64_t number = 0;  // 0: many
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t count = 1;  // instances
  int tasks = 0;
  int row = 0;  // in its run, from 0
  std::uint32_t flags = 0;
  Maybe cpu_time_ns, memory_peak_bytes;
  EventCounts events;
};

/// A run (or the job's script) in its lane.
struct RunBars {
  const Run* run = nullptr;  // nullptr: phases of the script of the whole heterogeneous job
  bool of_job = false;       // the lane of the job: phases that the script marked
  int first_row = 0, rows = 1;
  std::vector<Bar> bars;  // by begin
};

/// Every run of every node and the script's phases, at most `most` bars. `joined_ns`: what is
/// nearer than this was joined to get there, 0: nothing had to be.
struct Lanes {
  std::vector<RunBars> runs;
  std::int64_t joined_ns = 0;
};
Lanes lanes_of(const Timeline& timeline, std::size_t most);

}  // namespace sphase
