// write_table FILE: makes an advice table from lines on standard input, for the lab's tests:
//   KEY nodes=1 memory_mib=5120 peak_mib=4096 time_s=1800 cpus=2 runs=14 partition=debug
//       phase=stage:1:2048 phase=solve:4:4096            (path:nodes:memory_mib)
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <sstream>

#include "tests/job_submit/table_file.h"

namespace {

using sphase::Advice;
using sphase::AdvicePhase;

void set_phase(const std::string& text, Advice& advice) {
  std::istringstream parts(text);
  std::string path, nodes, memory;
  std::getline(parts, path, ':');
  std::getline(parts, nodes, ':');
  std::getline(parts, memory, ':');
  AdvicePhase& phase = advice.phase[advice.head.phases++];
  std::strncpy(phase.path, path.c_str(), sizeof(phase.path) - 1);
  phase.nodes = static_cast<std::uint32_t>(std::stoul(nodes));
  phase.memory_bytes = std::stoull(memory) << 20;
  phase.runs = advice.head.runs;
  phase.time_s = 10;
  phase.time_low_s = 8;
  phase.time_high_s = 12.5F;
}

void set(const std::string& name, const std::string& value, Advice& advice) {
  auto& head = advice.head;
  if (name == "phase") return set_phase(value, advice);
  if (name == "partition") {
    std::strncpy(head.partition, value.c_str(), sizeof(head.partition) - 1);
    return;
  }
  const auto number = std::stoull(value);
  if (name == "nodes") head.nodes = static_cast<std::uint32_t>(number);
  if (name == "memory_mib") head.memory_bytes = number << 20;
  if (name == "peak_mib") head.memory_peak_bytes = number << 20;
  if (name == "time_s") head.time_limit_s = static_cast<std::uint32_t>(number);
  if (name == "cpus") head.cpus_per_node = static_cast<std::uint32_t>(number);
  if (name == "runs") head.runs = static_cast<std::uint32_t>(number);
  if (name == "expires_s") head.expires_s = static_cast<std::int64_t>(number);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_table FILE < LINES\n");
    return 2;
  }
  sphase::testing::TableFile table(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string key, word;
    words >> key;
    Advice advice{};
    advice.head.made_s = std::time(nullptr);
    advice.head.expires_s = advice.head.made_s + 86400;
    advice.head.runs = 14;
    advice.head.confidence = 1;
    std::strcpy(advice.head.policy, "efficiency>=0.7");
    while (words >> word) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) return 2;
      set(word.substr(0, equals), word.substr(equals + 1), advice);
    }
    table.add(key, advice);
  }
  table.done();
}
