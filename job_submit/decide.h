// What is to be done with one submission: a pure function of the request, the site's limits and the
// advice. No clock, no file, no heap.
#pragma once

#include <cstdint>

#include "common/advice.h"
#include "common/resize_option.h"
#include "common/site_config.h"
#include "job_submit/request.h"
#include "job_submit/script_scan.h"

namespace sphase {

/// Why a job or a field was left as it was asked for.
enum class Why : std::uint8_t {
  kNone,
  // The whole job.
  kOff,
  kArray,
  kHet,
  kReservation,
  kGres,
  kHelper,
  kScriptSizes,
  kRefused,
  kNoAdvice,  // see Decision::state
  // One field.
  kUserSet,
  kInteractive,
  kNotGiven,
  kNodeList,
  kLayout,
  kUneven,
  kEnvironment,
  kFits,
  kSmall,
  kCeiling,
  kOtherPartition,
  kAllMemory,
  kCpusUnknown,
  kMemoryFollows,
  kFewerNodes,
  kAfterKill,
  kUnknown,
};

/// One word for the audit line, e.g. "user-set".
const char* word_of(Why why);
/// The same as the end of a sentence: "left as it is: …".
const char* sentence_of(Why why);

enum class Field : std::uint8_t { kNodes, kCpus, kMemory, kTime };
inline constexpr int kFields = 4;
const char* word_of(Field field);

/// Nodes: 1. CPUs: per task. Memory: MiB, per node or per CPU as the request was. Time: min.
struct FieldResult {
  std::uint64_t from = 0, to = 0;
  bool was_unset = false;
  bool wanted = false;   // another value would be better, and nothing but consent is missing
  bool changed = false;  // … and it was put into the answer
  Why why = Why::kNone;  // where it was not changed
};

struct Decision {
  ResizeMode mode = ResizeMode::kOff;
  bool mode_of_job = false;  // by --phase-resize
  AdviceState state = AdviceState::kMissing;
  Why job = Why::kNone;  // why all of it was left alone
  bool resizable = false;
  FieldResult field[kFields];

  const FieldResult& operator[](Field which) const { return field[static_cast<int>(which)]; }
  FieldResult& operator[](Field which) { return field[static_cast<int>(which)]; }
};

/// Fills in the numbers of `answer` and says why. `advice` counts only if `state` is kFound.
/// Rules, each with rows in tests/job_submit/decide_test.cpp:
///  - a mode of off, at any place, ends it; the job's own option goes before the site's others;
///  - a field that the user set changes only by that user's own `apply`, or by the site's OptIn;
///  the
///    time limit only by `,time` or OptIn=time;
///  - nodes and CPUs are never raised, memory never goes below the highest peak seen and its
///  margin;
///  - what might make Slurm refuse the job is left alone.
Decision decide(const sphase_request& request, const SiteConfig& config, const ScriptFacts& script,
                AdviceState state, const Advice& advice, sphase_answer& answer);

}  // namespace sphase
