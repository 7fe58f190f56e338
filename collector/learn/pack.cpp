// pack() of advise.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "collector/learn/advise.h"

namespace sphase {
namespace {

constexpr std::int64_t kDay = 86400;
/// Four threads that are always busy are seen as 3.98 to 4.02.
constexpr double kCpuNoise = 0.05;

std::uint32_t narrow(std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMost));
}

std::uint64_t bytes(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

std::uint32_t whole_cpus(double busy) {
  if (!(busy > 0)) return 0;
  return narrow(
      std::max<std::int64_t>(1, std::llround(std::ceil(std::min(busy, 1e9) - kCpuNoise))));
}

template <std::size_t size>
void copy(const std::string& text, char (&out)[size]) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

std::int64_t most_nodes_asked(const std::vector<ObservedJob>& runs) {
  std::int64_t most = 0;
  for (const auto& run : runs) {
    std::int64_t asked = run.nodes_asked.value_or(0);
    if (!run.nodes_asked && !run.phases.empty()) asked = run.phases.front().nodes;
    most = std::max(most, asked);
  }
  return most;
}

/// From where expiry counts: a profile that is no longer run grows old although it is packed anew.
std::int64_t newest_run(const std::vector<ObservedJob>& runs, std::int64_t now_s) {
  std::int64_t newest = 0;
  for (const auto& run : runs) newest = std::max(newest, run.end_s);
  return newest > 0 ? std::min(newest, now_s) : now_s;
}

template <typename Packed>
void put_time(const TimeRange& time, Packed& out) {
  out.time_s = static_cast<float>(time.expected);
  out.time_low_s = static_cast<float>(time.low);
  out.time_high_s = static_cast<float>(time.high);
}

AdvicePhase pack_phase(const PhaseAdvice& phase) {
  AdvicePhase packed{};
  copy(phase.path, packed.path);
  packed.nodes = narrow(phase.best.nodes);
  packed.runs = narrow(phase.runs);
  packed.memory_bytes = bytes(phase.memory_bytes);
  put_time(phase.best.time, packed);
  packed.cpus_busy = static_cast<float>(std::min(phase.cpus_busy, 1e9));
  return packed;
}

/// The whole job; `memory_only`: after a kill for memory, before there are runs enough for more.
void pack_job(const ProfileAdvice& advice, bool memory_only, AdviceHeader& head) {
  head.memory_bytes = bytes(advice.job.memory_bytes);
  head.memory_peak_bytes = bytes(advice.job.memory_peak_bytes);
  // A node of the partition has less than was once seen: what it has is all that can be asked for,
  // and a reader refuses a value whose memory is below its peak.
  if (head.memory_bytes != 0) {
    head.memory_peak_bytes = std::min(head.memory_peak_bytes, head.memory_bytes);
  }
  if (memory_only) return;
  head.nodes = narrow(advice.job.best.nodes);
  head.cpus_per_node = whole_cpus(advice.job.cpus_busy);
  head.time_limit_s = narrow(advice.time_limit_s);
  put_time(advice.job.best.time, head);
}

}  // namespace

Advice pack(const ProfileAdvice& advice, const std::vector<ObservedJob>& runs,
            const SiteConfig& config, std::int64_t now_s) {
  Advice packed;
  std::memset(&packed, 0, sizeof(packed));
  AdviceHeader& head = packed.head;
  head.made_s = now_s;
  head.expires_s = newest_run(runs, now_s) + kDay * config.expiry_days;
  head.runs = narrow(advice.runs);
  head.flags = advice.flags;
  head.nodes_asked_most = narrow(most_nodes_asked(runs));
  head.confidence = static_cast<float>(advice.confidence);
  write_policy(config.policy, head.policy, sizeof(head.policy));
  if (!runs.empty()) copy(runs.back().partition, head.partition);
  if (!advice.enough) return packed;
  pack_job(advice, advice.time_limit_s == 0, head);
  for (const auto& phase : advice.phases) {
    if (head.phases == kAdvicePhasesMost) break;
    if (phase.path.size() >= sizeof(AdvicePhase::path)) continue;
    packed.phase[head.phases++] = pack_phase(phase);
  }
  return packed;
}

}  // namespace sphase
