#include "cli/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace sphase {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c < ' ' || c > '~' ? '?' : c;
  }
  return out + '"';
}

std::string phase_json(const AdvicePhase& phase) {
  constexpr std::uint64_t kMiB = 1 << 20;
  return fmt::format(
      "{{\"path\":{},\"nodes\":{},\"memory_mib\":{},\"time_s\":{:.6g},\"time_low_s\":{:.6g},"
      "\"time_high_s\":{:.6g},\"runs\":{}}}",
      quoted(phase.path), phase.nodes, (phase.memory_bytes + kMiB - 1) / kMiB, phase.time_s,
      phase.time_low_s, phase.time_high_s, phase.runs);
}

}  // namespace

std::string plan_json(const std::string& profile, const Advice& advice) {
  std::string phases;
  const std::size_t count = std::min<std::size_t>(advice.head.phases, kAdvicePhasesMost);
  for (std::size_t i = 0; i < count; ++i) {
    phases += (i > 0 ? "," : "") + phase_json(advice.phase[i]);
  }
  return fmt::format(
      "{{\"version\":1,\"profile\":{},\"made\":{},\"policy\":{},\"runs\":{},\"phases\":[{}]}}",
      quoted(profile), advice.head.made_s, quoted(advice.head.policy), advice.head.runs, phases);
}

}  // namespace sphase
