// A job of ten seconds on two nodes, and runs on them.
#pragma once

#include <string>
#include <vector>

#include "tests/collector/fixture.h"

namespace sphase::testing {

inline Timeline two_nodes() {
  Timeline timeline;
  timeline.begin_ns = at(0);
  timeline.end_ns = at(10);
  Allocation allocation;
  allocation.begin_ns = at(0);
  allocation.end_ns = at(10);
  allocation.node_count = 2;
  allocation.cpus = 12;
  allocation.nodes = {{"n1", {}, {}}, {"n2", {}, {}}};
  timeline.allocations.push_back(allocation);
  return timeline;
}

inline Run run_on(const std::string& node, const std::string& step, double begin_s, double end_s,
                  double cpus) {
  Run run;
  run.node = node;
  run.step = step;
  run.begin_ns = at(begin_s);
  run.end_ns = at(end_s);
  run.ended = true;
  run.job_cpus = 4;
  run.step_cpus = 4;
  run.job_memory_bytes = 1000;
  run.step_nodes = 1;
  std::vector<Sample> samples(2);
  samples[0].time_ns = run.begin_ns;
  samples[1].time_ns = run.end_ns;
  samples[0].cpu_time_ns = 0;
  samples[1].cpu_time_ns = ns((end_s - begin_s) * cpus);
  samples[0].memory_bytes = samples[1].memory_bytes = 100;
  run.samples = SampleSeries(samples);
  return run;
}

}  // namespace sphase::testing
