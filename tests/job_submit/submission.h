// One submission for the tests of the rules: a batch job that asks for too much, and what was
// learned about it.
#pragma once

#include <cstdio>
#include <cstring>

#include "job_submit/decide.h"
#include "job_submit/request.h"

namespace sphase::testing {

constexpr std::uint64_t kGiB = 1ULL << 30;

/// sbatch -N4 --mem=8G --phase-resize=apply, with everything else left to Slurm.
inline sphase_request plain_batch() {
  sphase_request request{};
  request.uid = 1001;
  request.name = "solver";
  request.script = "#!/bin/bash\n./solver\n";
  request.resize = "apply";
  request.batch = 1;
  request.nodes_min = request.nodes_max = 4;
  request.tasks = request.tasks_per_node = request.cpus_per_task = SPHASE_UNSET;
  request.cpus_per_node_min = request.env_tasks = SPHASE_UNSET;
  request.cpus_min = 4;
  request.time_limit = SPHASE_UNSET;
  request.memory_mib = 8192;
  return request;
}

/// 14 runs: one node was used, 4 GiB at the most, 20 minutes.
inline Advice learned() {
  Advice advice{};
  advice.head.runs = 14;
  advice.head.made_s = 1'764'536'000;
  advice.head.expires_s = advice.head.made_s + 90 * 86400;
  advice.head.nodes = 1;
  advice.head.nodes_asked_most = 4;
  advice.head.cpus_per_node = 2;
  advice.head.time_limit_s = 1800;
  advice.head.memory_bytes = 5 * kGiB;
  advice.head.memory_peak_bytes = 4 * kGiB;
  advice.head.time_s = 1200;
  advice.head.time_low_s = 1100;
  advice.head.time_high_s = 1300;
  advice.head.confidence = 1;
  std::strcpy(advice.head.policy, "efficiency>=0.7");
  std::strcpy(advice.head.partition, "debug");
  return advice;
}

/// Three phases: stage on 1 node, solve on 4, post on 1.
inline void add_phases(Advice& advice) {
  const char* const names[] = {"stage", "solve", "post"};
  for (int i = 0; i < 3; ++i) {
    AdvicePhase& phase = advice.phase[i];
    std::snprintf(phase.path, sizeof(phase.path), "%s", names[i]);
    phase.nodes = i == 1 ? 4 : 1;
    phase.runs = 14;
    phase.memory_bytes = static_cast<std::uint64_t>(i + 2) * kGiB;
    phase.time_s = 60;
    phase.time_low_s = 50;
    phase.time_high_s = 75;
  }
  advice.head.phases = 3;
  advice.head.nodes = 4;
}

struct Submission {
  sphase_request request = plain_batch();
  SiteConfig config;
  ScriptFacts script;
  AdviceState state = AdviceState::kFound;
  Advice advice = learned();
  sphase_answer answer{};

  Decision decide() {
    answer = sphase_answer();
    return sphase::decide(request, config, script, state, advice, answer);
  }
};

}  // namespace sphase::testing
