// Can this node count, and what? Asked once per boot: PAPI may call a component active although
// nothing can be opened (PAPI #354), so each event is opened once, on ourselves.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spank/recorder/papi/papi_api.h"
#include "spank/recorder/sources/sampler.h"

namespace sphase {

/// What is counted for each task of a run. No events: tier.source is "none", tier.reason says why.
struct PapiPlan {
  Tier tier{"none", ""};  // source: "papi-hw" | "papi-sw" (software events only) | "none"
  std::vector<std::string> events;
  bool multiplexed = false;  // events take turns; see PapiCount
  int descriptors = 0;       // that one task needs: one per native counter
  bool operator==(const PapiPlan& other) const;
};

/// What the user asked for: "PAPI_TOT_INS+PAPI_TOT_CYC", "+mpx" among them allows multiplexing.
/// Each entry is a list of alternatives of which the first that works is counted.
struct PapiWish {
  struct Event {
    std::vector<std::string> names;
    bool optional = false;  // not worth a reason if it cannot be counted
  };
  std::vector<Event> events;
  bool multiplex = false;
  int too_many = 0;  // events left out because there were kMostEvents before them
};
constexpr std::size_t kMostEvents = 8;

/// "" and "mpx": instructions and cycles, and where the chip has them last-level cache misses and
/// floating-point operations.
PapiWish parse_papi_wish(std::string_view asked);

/// Opens every event asked for, alone and together, on the calling process.
/// Multiplexed only if "mpx" was asked for and the events do not fit together otherwise; without it
/// those that do not fit are left out, and the reason names them.
/// Cost: 2 ms for PAPI_library_init, and 0.3 ms per event and set.
PapiPlan probe_papi(const PapiApi& api, std::string_view asked);

/// The same, kept in `run_dir` for later recorders until the node boots, PAPI changes, or
/// kernel.perf_event_paranoid does. A file that is damaged, not ours, or writable by others is as
/// none. At most 16 files, whatever users ask for. Cost when kept: 30 µs.
PapiPlan probe_papi_once(const PapiApi& api, std::string_view asked, const std::string& run_dir);

/// What is kept, if it is that this node can count nothing and PAPI is the same file as then: it
/// need not be loaded. Cost: 40 µs, instead of 1.4 ms.
std::optional<PapiPlan> kept_none(std::string_view asked, const std::string& run_dir);

/// The kept form, and back. nullopt: damaged, or of another key.
std::string kept_plan(const PapiPlan& plan, const std::string& key);
std::optional<PapiPlan> parse_kept_plan(std::string_view text, const std::string& key);

}  // namespace sphase
