#include "spank/recorder/papi/papi_probe.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "spank/recorder/file.h"
#include "spank/recorder/papi/papi_set.h"

namespace sphase {
namespace {

struct Candidate {
  std::string name;
  int event = 0;
  int component = 0;
  std::size_t files = 0;
};

/// Software events of the kernel, by libpfm4's names ("perf::TASK-CLOCK").
bool is_software(const std::string& name) {
  if (name.rfind("perf::", 0) != 0) return false;
  for (const char* word : {"TASK-CLOCK", "TASK_CLOCK", "CPU-CLOCK", "CPU_CLOCK", "FAULTS",
                           "SWITCHES", "MIGRATIONS", "CGROUP", "PERF_COUNT_SW"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string kernel_words(const PapiApi& api) {
  switch (api.kernel_refusal()) {
    case 0:
      return "";
    case EACCES:
    case EPERM:
      return "the kernel forbids counting (kernel.perf_event_paranoid)";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "this node has no hardware counters (no PMU, as in most virtual machines)";
    case ENOSYS:
      return "this kernel has no perf events";
    default:
      return "the kernel does not count";
  }
}

PapiSet::Request request_of(const std::vector<Candidate>& candidates, bool multiplexed) {
  PapiSet::Request request;
  request.pid = getpid();
  request.multiplexed = multiplexed;
  for (const Candidate& candidate : candidates) {
    request.events.push_back(candidate.event);
    request.component = candidate.component;
  }
  return request;
}

/// Opens, reads and closes. Returns PAPI's code; kPapiConflict too if the counters cannot run now.
int try_set(const PapiApi& api, const std::vector<Candidate>& candidates, bool multiplexed,
            std::size_t* files) {
  PapiSet set(api);
  const int opened = set.open(request_of(candidates, multiplexed));
  if (opened != kPapiOk) return opened;
  set.find_files(SIZE_MAX, {});
  if (files != nullptr) *files = set.files().size();
  if (!set.files().empty() && !set.read_file(0, multiplexed)) return kPapiConflict;
  long long counts[kMostEvents] = {};
  return set.read(counts);
}

/// The first name that can be counted alone. Error: PAPI's words on the first.
Result<Candidate> first_that_works(const PapiApi& api, const PapiWish::Event& wanted) {
  std::string why;
  for (const std::string& name : wanted.names) {
    Candidate found{name};
    int code = api.find_event(name, &found.event);
    if (code == kPapiOk) found.component = api.component_of(found.event);
    if (code == kPapiOk) code = found.component < 0 ? found.component : kPapiOk;
    if (code == kPapiOk) code = try_set(api, {found}, false, &found.files);
    if (code == kPapiOk) return found;
    if (why.empty()) why = name + " (" + api.error_text(code) + ")";
  }
  return Error{why};
}

struct Chosen {
  std::vector<Candidate> candidates;
  std::vector<std::string> left_out;  // with why
  void leave_out(const std::string& words) {
    if (!words.empty()) left_out.push_back(words);
  }
};

Chosen countable_alone(const PapiApi& api, const PapiWish& wish) {
  Chosen chosen;
  for (const PapiWish::Event& wanted : wish.events) {
    const auto candidate = first_that_works(api, wanted);
    if (candidate) {
      chosen.candidates.push_back(*candidate);
    } else if (!wanted.optional) {
      chosen.leave_out(candidate.error());
    }
  }
  return chosen;
}

bool is_optional(const PapiWish& wish, const std::string& name) {
  return std::any_of(wish.events.begin(), wish.events.end(), [&](const PapiWish::Event& event) {
    return event.optional &&
           std::find(event.names.begin(), event.names.end(), name) != event.names.end();
  });
}

/// In the order asked for, each that still fits beside those before it.
Chosen fitting_together(const PapiApi& api, const Chosen& alone, const PapiWish& wish,
                        bool multiplexed) {
  Chosen chosen;
  chosen.left_out = alone.left_out;
  if (!multiplexed && try_set(api, alone.candidates, false, nullptr) == kPapiOk) return alone;
  for (const Candidate& candidate : alone.candidates) {
    if (multiplexed && candidate.files > 1) {
      chosen.leave_out(candidate.name + " (made of several counters: not to be multiplexed)");
      continue;
    }
    std::vector<Candidate> more = chosen.candidates;
    more.push_back(candidate);
    const int code = try_set(api, more, multiplexed, nullptr);
    if (code == kPapiOk) {
      chosen.candidates = std::move(more);
    } else if (!is_optional(wish, candidate.name)) {
      chosen.leave_out(candidate.name + " (does not fit beside the others: " +
                       api.error_text(code) + "; \"mpx\" lets events take turns)");
    }
  }
  return chosen;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

PapiPlan plan_of(const PapiApi& api, const Chosen& chosen, bool multiplexed) {
  constexpr std::size_t kMostReason = 400;
  PapiPlan plan;
  plan.multiplexed = multiplexed && !chosen.candidates.empty();
  bool software_only = true;
  for (const Candidate& candidate : chosen.candidates) {
    plan.events.push_back(candidate.name);
    plan.descriptors += static_cast<int>(candidate.files);
    software_only = software_only && is_software(candidate.name);
  }
  if (!plan.events.empty()) plan.tier.source = software_only ? "papi-sw" : "papi-hw";
  std::string& reason = plan.tier.reason;
  if (plan.events.empty() || software_only) reason = kernel_words(api);
  const bool one_cause = plan.events.empty() && !reason.empty();
  if (!one_cause && !chosen.left_out.empty()) {
    reason += (reason.empty() ? "not counted: " : "; not counted: ") + joined(chosen.left_out);
  }
  reason.resize(std::min(reason.size(), kMostReason));
  return plan;
}

}  // namespace

bool PapiPlan::operator==(const PapiPlan& other) const {
  return tier.source == other.tier.source && tier.reason == other.tier.reason &&
         events == other.events && multiplexed == other.multiplexed &&
         descriptors == other.descriptors;
}

PapiWish parse_papi_wish(std::string_view asked) {
  PapiWish wish;
  std::set<std::string_view> seen;
  while (!asked.empty()) {
    const std::string_view word = asked.substr(0, asked.find('+'));
    asked.remove_prefix(std::min(asked.size(), word.size() + 1));
    if (word == "mpx") wish.multiplex = true;
    if (word.empty() || word == "mpx" || !seen.insert(word).second) continue;
    if (wish.events.size() < kMostEvents) {
      wish.events.push_back({{std::string(word)}, false});
    } else {
      ++wish.too_many;
    }
  }
  if (!wish.events.empty()) return wish;
  wish.events = {{{"PAPI_TOT_INS"}, false},
                 {{"PAPI_TOT_CYC"}, false},
                 {{"PAPI_L3_TCM", "perf::CACHE-MISSES"}, true},
                 {{"PAPI_FP_OPS", "PAPI_DP_OPS"}, true}};
  return wish;
}

PapiPlan probe_papi(const PapiApi& api, std::string_view asked) {
  const PapiWish wish = parse_papi_wish(asked);
  const int code = api.library_init();
  PapiPlan none;
  none.tier.reason = "PAPI cannot be initialised: " + api.error_text(code);
  if (code != kPapiOk) return none;
  Chosen alone = countable_alone(api, wish);
  if (wish.too_many > 0) {
    alone.leave_out(std::to_string(wish.too_many) + " more (at most " +
                    std::to_string(kMostEvents) + ")");
  }
  const Chosen plain = fitting_together(api, alone, wish, false);
  const bool all_fit = plain.candidates.size() == alone.candidates.size();
  if (all_fit || !wish.multiplex || api.multiplex_init() != kPapiOk) {
    return plan_of(api, plain, false);
  }
  return plan_of(api, fitting_together(api, alone, wish, true), true);
}

}  // namespace sphase
