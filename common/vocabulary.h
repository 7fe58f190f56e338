// Words that several rooms share: what they write into a database and what they read from it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sphase {

/// Version of the tables in common/schema, kept in PRAGMA user_version.
inline constexpr int kSchemaVersion = 3;

/// Bits of phase.flags.
enum PhaseFlag : std::uint32_t {
  kUnclosed = 1,      // nobody ended it; closed at the end of its task (or of the step)
  kFolded = 2,        // marked too often to keep each instance: one row stands for `count` of them
  kLate = 4,          // its counters were read later than a kernel tick after the marker
  kInterpolated = 8,  // CPU time at an edge was computed from two reads around it
  kEndLost = 16,  // its end was dropped from a full ring; it ends where the next marker shows it
  kRecorderLost = 32,  // the recorder ended first; times up to the last sign of life
};

/// phase.scope
inline constexpr std::string_view kScopeTask = "task";
inline constexpr std::string_view kScopeShell = "shell";

/// step of a run that is not numbered; extern is never recorded.
inline constexpr std::string_view kStepBatch = "batch";
inline constexpr std::string_view kStepInteractive = "interactive";

/// notice.code
namespace notice {
inline constexpr std::string_view kNotActive = "not-active";  // asked for, but nothing recorded
inline constexpr std::string_view kConfig = "config";  // plugstack.conf has what is not understood
inline constexpr std::string_view kRecorderLost = "recorder-lost";    // died or was killed mid-run
inline constexpr std::string_view kRecorderSlow = "recorder-slow";    // did not answer in time
inline constexpr std::string_view kStoreFailed = "store-failed";      // node.db could not be used
inline constexpr std::string_view kStoreReplaced = "store-replaced";  // damaged or newer: set aside
inline constexpr std::string_view kSource = "source";  // a counter source is absent or poorer
inline constexpr std::string_view kDamagedRows = "damaged-rows";  // sealed rows were unreadable
inline constexpr std::string_view kGap = "gap";  // no samples for more than two periods
inline constexpr std::string_view kUnmatchedEnd = "unmatched-end";  // an end without its begin
inline constexpr std::string_view kTooDeep = "too-deep";  // nested deeper than SPHASE_MAX_DEPTH
inline constexpr std::string_view kFolded = "folded";     // a path was marked too often
inline constexpr std::string_view kLimit = "limit";       // a bound of ours was reached
inline constexpr std::string_view kNoRealtime = "no-realtime";  // edges may be read late
}  // namespace notice

}  // namespace sphase
