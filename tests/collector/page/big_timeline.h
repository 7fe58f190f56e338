// Timelines of any size, made by hand: for sizes and times of the page.
#pragma once

#include <random>
#include <string>
#include <utility>

#include "collector/timeline/timeline.h"

namespace sphase::testing {

struct BigSpec {
  int nodes = 1;
  int samples = 1000;  // of each node
  int phases = 10;     // of each node
};

/// One step on every node for an hour, with noise, so that nothing of it is easily written.
inline Run big_run(int number, const BigSpec& spec, std::int64_t begin_ns, std::int64_t end_ns) {
  std::mt19937 random(static_cast<unsigned>(number));
  Run run;
  run.run_id = number + 1;
  run.step = "0";
  run.node = "node" + std::to_string(1000 + number);
  run.begin_ns = begin_ns;
  run.end_ns = end_ns;
  run.ended = true;
  run.job_cpus = run.step_cpus = 64;
  run.job_memory_bytes = run.step_memory_bytes = std::int64_t{256} << 30;
  run.step_nodes = spec.nodes;
  std::vector<Sample> samples;
  std::int64_t used_ns = 0;
  const std::int64_t period_ns = (end_ns - begin_ns) / std::max(1, spec.samples - 1);
  for (int i = 0; i < spec.samples; ++i) {
    Sample sample;
    sample.time_ns = begin_ns + i * period_ns + random() % 1000;
    sample.cpu_time_ns = used_ns;
    sample.memory_bytes = (std::int64_t{1} << 36) + random();
    used_ns += period_ns * static_cast<std::int64_t>(random() % 64);
    samples.push_back(sample);
  }
  run.samples = SampleSeries(std::move(samples));
  for (int i = 0; i < spec.phases; ++i) {
    PhaseMark mark;
    mark.path = i % 2 == 0 ? "iterate" : "iterate/exchange with neighbours";
    mark.depth = i % 2;
    mark.number = i / 2 + 1;
    mark.begin_ns = begin_ns + (end_ns - begin_ns) * (i / 2 * 2 + i % 2) / (spec.phases + 2);
    mark.end_ns = begin_ns + (end_ns - begin_ns) * (i / 2 * 2 + 2) / (spec.phases + 2);
    mark.cpu_time_ns = random();
    mark.memory_peak_bytes = (std::int64_t{1} << 36) + random();
    mark.counts = {{"PAPI_TOT_INS", random(), {}, {}}, {"PAPI_TOT_CYC", random(), {}, {}}};
    run.phases.push_back(std::move(mark));
  }
  return run;
}

inline Timeline big_timeline(const BigSpec& spec) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  Timeline timeline;
  timeline.job.job_id = 1;
  timeline.job.start_s = 1'700'000'000;
  timeline.begin_ns = *timeline.job.start_s * kSecondNs;
  timeline.end_ns = timeline.begin_ns + 3600 * kSecondNs;
  Allocation whole;
  whole.begin_ns = timeline.begin_ns;
  whole.end_ns = timeline.end_ns;
  for (int i = 0; i < spec.nodes; ++i) {
    timeline.runs.push_back(big_run(i, spec, timeline.begin_ns, timeline.end_ns));
    whole.nodes.push_back({timeline.runs.back().node, 64, std::int64_t{256} << 30});
    NodeUse use;
    use.node = timeline.runs.back().node;
    timeline.nodes.push_back(std::move(use));
  }
  timeline.allocations.push_back(std::move(whole));
  return timeline;
}

}  // namespace sphase::testing
