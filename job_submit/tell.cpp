#include "job_submit/tell.h"

#include "job_submit/text.h"

namespace sphase {
namespace {

using Number = unsigned long long;

constexpr Field kAll[] = {Field::kNodes, Field::kCpus, Field::kMemory, Field::kTime};
constexpr std::uint64_t kUnlimited = SPHASE_UNSET - 1;  // time limit INFINITE, plugin.c

void minutes(std::uint64_t value, Text& out) {
  if (value == kUnlimited) {
    out.add("unlimited");
    return;
  }
  out.print("%llu:%02llu:00", Number{value / 60}, Number{value % 60});
}

void value(const sphase_request& request, Field field, std::uint64_t number, Text& out) {
  if (field == Field::kMemory) {
    out.memory(number);
    if (request.memory_per_cpu) out.add("/CPU");
  } else if (field == Field::kTime) {
    minutes(number, out);
  } else {
    out.number(number);
  }
}

const char* name_of(Field field) {
  constexpr const char* kNames[] = {"nodes", "CPUs per task", "memory", "time limit"};
  return kNames[static_cast<int>(field)];
}

/// "memory 8G -> 5G"
void change(const sphase_request& request, Field field, const FieldResult& result, Text& out) {
  out.add(name_of(field)).put(' ');
  if (result.was_unset) {
    out.add("unset");
  } else {
    value(request, field, result.from, out);
  }
  out.add(" -> ");
  value(request, field, result.to, out);
}

/// "nodes 4 -> 1, memory 8G -> 5G", of those for which `which` is true. False: none.
template <typename Which>
bool changes(const sphase_request& request, const Decision& decision, Which which, Text& out) {
  bool any = false;
  for (const Field field : kAll) {
    if (!which(decision[field])) continue;
    if (any) out.add(", ");
    change(request, field, decision[field], out);
    any = true;
  }
  return any;
}

bool is_changed(const FieldResult& result) { return result.changed; }
bool is_wish(const FieldResult& result) { return result.wanted && !result.changed; }

void evidence(const Advice& advice, Text& out) {
  const std::uint64_t peak_mib = (advice.head.memory_peak_bytes + (1 << 20) - 1) >> 20;
  out.add(" (");
  if (peak_mib != 0) {
    out.add("peak ");
    out.memory(peak_mib);
    out.add(" ");
  }
  out.print("in %u %s)", advice.head.runs, advice.head.runs == 1 ? "run" : "runs");
}

const char* what_is_missing(AdviceState state) {
  switch (state) {
    case AdviceState::kExpired:
      return "what was learned about it is too old";
    case AdviceState::kDamaged:
      return "the site's advice table is damaged";
    case AdviceState::kOtherVersion:
      return "the site's advice table is of another version";
    default:
      return "nothing was learned about it yet";
  }
}

void why_left(const Decision& decision, Text& out) {
  if (decision.job == Why::kNoAdvice) {
    out.add(what_is_missing(decision.state));
    return;
  }
  out.add(decision.job != Why::kNone ? sentence_of(decision.job) : "it fits");
}

void audit_fields(const sphase_request& request, const Decision& decision, const char* key,
                  bool (*which)(const FieldResult&), Text& out) {
  bool any = false;
  out.add(" ").add(key).put('=');
  for (const Field field : kAll) {
    if (!which(decision[field])) continue;
    out.add(any ? "," : "").add(word_of(field)).add(":").number(decision[field].to);
    if (field == Field::kMemory && request.memory_per_cpu) out.add("/cpu");
    any = true;
  }
  if (!any) out.add("-");
}

void asked(const char* name, std::uint32_t number, const char* before, Text& out) {
  if (number == SPHASE_UNSET) {
    out.add(before).add(name).add(":-");
  } else {
    out.add(before).add(name).add(":").number(number);
  }
}

void audit_asked(const sphase_request& request, Text& out) {
  const bool range = request.nodes_max != SPHASE_UNSET && request.nodes_min != SPHASE_UNSET;
  out.add(" asked=");
  asked("nodes", range ? request.nodes_max : request.nodes_min, "", out);
  asked("tasks", request.tasks, ",", out);
  asked("cpus", request.cpus_per_task, ",", out);
  if (request.memory_mib == SPHASE_UNSET64) {
    out.add(",memory:-");
  } else {
    out.add(",memory:").number(request.memory_mib).add(request.memory_per_cpu ? "/cpu" : "");
  }
  asked("time", request.time_limit, ",", out);
}

void audit_left(const Decision& decision, Text& out) {
  out.add(" left=");
  if (decision.job != Why::kNone) {
    out.add("job:").add(word_of(decision.job));
    return;
  }
  bool any = false;
  for (const Field field : kAll) {
    const FieldResult& result = decision[field];
    if (result.changed || result.why == Why::kNone) continue;
    out.add(any ? "," : "").add(word_of(field)).add(":").add(word_of(result.why));
    any = true;
  }
  if (!any) out.add("-");
}

}  // namespace

void tell_user(const sphase_request& request, std::string_view profile, const Decision& decision,
               const Advice& advice, sphase_answer& answer) {
  Text out(answer.message, sizeof(answer.message));
  char buffer[256];
  if (decision.mode != ResizeMode::kAdvise && decision.mode != ResizeMode::kApply) return;
  const bool asked_for = decision.mode_of_job && decision.mode == ResizeMode::kApply;
  Text done(buffer, sizeof(buffer));
  if (changes(request, decision, is_changed, done)) {
    out.print("sphase: %s", buffer);
    evidence(advice, out);
    out.add("; --phase-resize=off keeps yours");
  }
  Text wish(buffer, sizeof(buffer));
  if (changes(request, decision, is_wish, wish)) {
    const FieldResult& time = decision[Field::kTime];
    out.print("%ssphase: this would do: %s", out.empty() ? "" : "\n", buffer);
    evidence(advice, out);
    out.print("; --phase-resize=apply%s asks for it",
              is_wish(time) && !time.was_unset ? ",time" : "");
  }
  if (out.empty() && asked_for) {
    out.add("sphase: left as it is: ");
    why_left(decision, out);
    out.add(" (profile ");
    out.add(profile);
    out.add(")");
  }
}

void tell_audit(const sphase_request& request, std::string_view profile, const Decision& decision,
                const Advice& advice, sphase_answer& answer) {
  Text out(answer.audit, sizeof(answer.audit));
  if (decision.mode == ResizeMode::kOff) return;
  const bool found = decision.state == AdviceState::kFound;
  out.add("sphase/1 profile=");
  out.add(profile);
  out.add(" mode=").add(word_of(decision.mode));
  out.add(decision.mode_of_job ? " from=job" : " from=site");
  out.add(" advice=").add(word_of(decision.state));
  if (found)
    out.print(" runs=%u made=%lld", advice.head.runs, static_cast<long long>(advice.head.made_s));
  audit_asked(request, out);
  audit_fields(request, decision, "set", is_changed, out);
  audit_fields(request, decision, "would", is_wish, out);
  audit_left(decision, out);
}

void tell_plan(std::string_view profile, const Decision& decision, const Advice& advice,
               sphase_answer& answer) {
  Text out(answer.plan, sizeof(answer.plan));
  const bool wanted = decision.mode == ResizeMode::kAdvise || decision.mode == ResizeMode::kApply;
  if (!wanted || decision.job != Why::kNone || advice.head.phases == 0) return;
  char name[160];
  std::snprintf(name, sizeof(name), "%.*s", static_cast<int>(profile.size()), profile.data());
  out.add("{\"version\":1,\"profile\":");
  out.json(name);
  out.print(",\"made\":%lld,\"policy\":", static_cast<long long>(advice.head.made_s));
  out.json(advice.head.policy);
  out.print(",\"runs\":%u,\"phases\":[", advice.head.runs);
  for (std::size_t i = 0; i < advice.head.phases; ++i) {
    const AdvicePhase& phase = advice.phase[i];
    out.print("%s{\"path\":", i == 0 ? "" : ",");
    out.json(phase.path);
    out.print(
        ",\"nodes\":%u,\"memory_mib\":%llu,\"time_s\":%.6g,\"time_low_s\":%.6g,"
        "\"time_high_s\":%.6g,\"runs\":%u}",
        phase.nodes, Number{(phase.memory_bytes + (1 << 20) - 1) >> 20},
        static_cast<double>(phase.time_s), static_cast<double>(phase.time_low_s),
        static_cast<double>(phase.time_high_s), phase.runs);
  }
  out.add("]}");
  if (out.cut()) answer.plan[0] = '\0';  // half a plan is none
}

void explain(const sphase_request& request, std::string_view profile, const Decision& decision,
             const Advice& advice, sphase_answer& answer) {
  Text out(answer.message, sizeof(answer.message));
  out.add("sphase: profile ");
  out.add(profile);
  out.print("\nsphase: mode %s, by %s", word_of(decision.mode),
            decision.mode_of_job ? "--phase-resize" : "the site");
  if (decision.state == AdviceState::kFound) {
    out.print("\nsphase: advice from %u runs, policy %s, confidence %.0f %%", advice.head.runs,
              advice.head.policy, static_cast<double>(advice.head.confidence) * 100);
  }
  if (decision.job != Why::kNone) {
    out.add("\nsphase: left as it is: ");
    return why_left(decision, out);
  }
  for (const Field field : kAll) {
    const FieldResult& result = decision[field];
    out.add("\nsphase: ");
    if (result.changed || result.wanted) {
      change(request, field, result, out);
      out.add(result.changed ? ": would be changed" : ": advised only");
      if (result.why != Why::kNone) out.print(" (%s)", sentence_of(result.why));
    } else {
      out.print("%s ", name_of(field));
      if (result.was_unset) {
        out.add("unset");
      } else {
        value(request, field, result.from, out);
      }
      out.print(": stays (%s)", sentence_of(result.why));
    }
  }
  if (answer.plan[0] != '\0')
    out.print("\nsphase: the job gets a plan of %u phases", advice.head.phases);
}

}  // namespace sphase
