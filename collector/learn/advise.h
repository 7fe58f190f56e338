// From observations to advice: pure functions, no clock, no database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/learn/observation.h"
#include "collector/learn/time_model.h"
#include "common/advice.h"
#include "common/site_config.h"

namespace sphase {

/// What Slurm would refuse on the partition of the runs; 0 = no limit known.
struct PartitionLimits {
  std::int64_t nodes_least = 0, nodes_most = 0;
  std::int64_t time_most_s = 0;
  std::int64_t memory_most_bytes =
      0;  // of its smallest node that has most: none bigger can be asked
};

/// One size and what is expected there.
struct SizeChoice {
  std::int64_t nodes = 0;
  TimeRange time;         // of the phase, s
  double efficiency = 0;  // T(1) / (n T(n)) by the model
};

/// One phase of the plan, or the whole job (path "").
struct PhaseAdvice {
  std::string path;
  std::int64_t runs = 0;
  SizeChoice best;
  std::vector<SizeChoice> sizes;  // every size that was considered, ascending
  std::int64_t memory_peak_bytes = 0, memory_bytes = 0;  // per node; 0 = not known
  double cpus_busy = 0;
  TimeModel model;
};

struct ProfileAdvice {
  std::int64_t runs = 0;    // that count
  std::uint32_t flags = 0;  // AdviceFlag
  PhaseAdvice job;
  std::vector<PhaseAdvice> phases;  // the plan, in the order in which they begin
  std::int64_t time_limit_s = 0;
  double confidence = 0;  // share of the last runs whose peak and time it would have covered
  bool enough = false;    // as many runs as the site wants, or a raise after a kill for memory
  std::string reason;     // one sentence: why there is none yet, or what it stands on
};

/// `runs` oldest first. Deterministic: the same runs give the same advice.
ProfileAdvice advise(const std::vector<ObservedJob>& runs, const SiteConfig& config,
                     const PartitionLimits& limits);

/// The same as a value of advice.cdb, not yet sealed. It expires the site's AdviceExpiry after the
/// end of the newest run, not after `now_s`.
Advice pack(const ProfileAdvice& advice, const std::vector<ObservedJob>& runs,
            const SiteConfig& config, std::int64_t now_s);

}  // namespace sphase
