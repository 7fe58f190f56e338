// What was learned about one profile, as one value of the table advice.cdb (tinycdb; key = the
// profile key). Written by `sphase-collector learn`, read inside slurmctld and by `sphase`.
//
// The layout is the C structs below, host byte order: the table never leaves the hosts of one
// controller. A reader takes a value only if magic, version, size and checksum fit; the checksum
// covers the key too, so that a damaged table can give no answer, but never another profile's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sphase {

inline constexpr std::uint32_t kAdviceMagic = 0x41485053;  // "SPHA"
inline constexpr std::uint16_t kAdviceVersion = 1;
inline constexpr std::size_t kAdvicePhasesMost = 24;

enum AdviceFlag : std::uint32_t {
  kAdviceOom = 1,            // killed for memory, and too few good runs since: a raise is in force
  kAdviceTimeout = 2,        // a run reached its time limit: times are lower bounds
  kAdviceDefaultMemory = 8,  // what was killed had the site's default memory
  kAdviceModel = 4,  // nodes come from a model over several sizes, not from idle nodes alone
};

/// One phase of the plan; 0 = not known.
struct AdvicePhase {
  char path[64];                          // as marked, '\0'-terminated
  std::uint32_t nodes;                    // advised
  std::uint32_t runs;                     // observations behind it
  std::uint64_t memory_bytes;             // per node: highest peak seen, with margin
  float time_s, time_low_s, time_high_s;  // at `nodes`; 80 % interval
  float cpus_busy;                        // most CPUs busy on one node
};

/// The whole job; 0 = no advice for that field.
struct AdviceHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t phases;            // AdvicePhase that follow
  std::uint64_t checksum;          // fnv1a of the key, then of the value with this field 0
  std::int64_t made_s, expires_s;  // Unix time
  std::uint32_t runs;              // that it was learned from
  std::uint32_t flags;             // AdviceFlag
  std::uint32_t nodes;             // best single size
  std::uint32_t nodes_asked_most;  // largest request among the runs
  std::uint32_t cpus_per_node;     // most CPUs busy on one node, rounded up
  std::uint32_t time_limit_s;      // longest run with margin
  std::uint64_t memory_bytes;      // per node, at `nodes`: never below memory_peak_bytes and margin
  std::uint64_t memory_peak_bytes;        // highest peak of a node seen in any run
  float time_s, time_low_s, time_high_s;  // of the job at `nodes`; 80 % interval
  float confidence;    // 0..1: share of recent runs that the advice would have fitted
  char policy[24];     // e.g. "efficiency>=0.7"
  char partition[40];  // of the runs: limits of another one are not known
};

static_assert(sizeof(AdvicePhase) == 96);
static_assert(sizeof(AdviceHeader) == 152);
inline constexpr std::size_t kAdviceBytesMost =
    sizeof(AdviceHeader) + kAdvicePhasesMost * sizeof(AdvicePhase);

/// One value with room for all phases. No heap: it is read on a stack of slurmctld's.
struct Advice {
  AdviceHeader head;
  AdvicePhase phase[kAdvicePhasesMost];
};

enum class AdviceState { kFound, kMissing, kDamaged, kOtherVersion, kExpired };
const char* word_of(AdviceState state);

/// Sets magic, version and checksum of `advice` for `key`; returns the bytes to store.
std::size_t seal_advice(std::string_view key, Advice& advice);

/// Copies the value of `key` out of `bytes` if it can be trusted; every string is terminated and
/// every float finite then.
AdviceState read_advice(std::string_view key, std::string_view bytes, std::int64_t now_s,
                        Advice& out);

}  // namespace sphase
