#include "collector/report/why_print.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collector/learn/reason.h"
#include "collector/report/format.h"
#include "collector/report/observed.h"
#include "collector/report/report_print.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kRunsShown = 10;

struct Words {
  std::string_view word, sentence;
};

/// Words of the job_submit plugin for what it left alone: job_submit/decide_words.cpp.
constexpr Words kReasons[] = {
    {"off", "resizing is off for it"},
    {"array", "job arrays are not resized"},
    {"het-job", "heterogeneous jobs are not resized"},
    {"reservation", "it runs in a reservation"},
    {"gres", "it asks for GRES (GPUs or the like), about which nothing is learned yet"},
    {"helper", "it was made to be merged into another job"},
    {"script-sizes", "its script gives sizes to srun or mpirun itself"},
    {"inconsistent", "its own sizes contradict each other"},
    {"no-advice", "there was no advice for it"},
    {"user-set", "the user set it, and did not allow a change (--phase-resize=apply)"},
    {"interactive", "srun and salloc keep what was typed"},
    {"not-given", "it was not asked for"},
    {"node-list", "the job names its nodes"},
    {"layout", "the job lays out its tasks by socket, core or plane"},
    {"uneven", "its tasks do not divide evenly over the nodes advised"},
    {"environment", "SLURM_NTASKS in its environment was not the job's"},
    {"fits", "it fits"},
    {"small", "the difference is not worth it"},
    {"site-ceiling", "the site allows less than it needs"},
    {"other-partition", "it was learned on another partition"},
    {"all-memory", "all memory of the nodes was asked for"},
    {"tasks-unknown", "tasks per node were not known before it started"},
    {"memory-follows", "memory is counted per CPU and would shrink too"},
    {"fewer-nodes", "it asked for fewer nodes than it was seen on"},
    {"after-kill", "a run had been killed for memory; more than that was not known yet"},
    {"unknown", "nothing was known about it"},
};

constexpr Words kAdviceStates[] = {
    {"found", "found"},
    {"none", "none: nothing was learned about it then"},
    {"damaged", "none: the site's advice table was damaged"},
    {"other-version", "none: the site's advice table was of another version of sphase"},
    {"expired", "none: what was learned about it was too old"},
};

constexpr Words kModes[] = {
    {"observe", "observe: what would be advised is noted, nobody is told"},
    {"advise", "advise: the user is told what would do, nothing is changed"},
    {"apply", "apply: fields that may be changed are changed"},
};

template <std::size_t size>
std::string sentence_of(const Words (&words)[size], const std::string& word) {
  for (const auto& known : words) {
    if (known.word == word) return std::string(known.sentence);
  }
  return word.empty() ? "not told" : word;
}

std::string minutes(std::int64_t value) {
  constexpr std::int64_t kUnlimited = 0xFFFFFFFE;  // INFINITE less one, as the plugin writes it
  if (value >= kUnlimited) return "unlimited";
  return fmt::format("{}:{:02}:00", value / 60, value % 60);
}

struct FieldName {
  std::string_view field;  // as in the audit line
  const char* title;
  Maybe AuditSizes::*size;
};
constexpr std::array<FieldName, 5> kFields = {{{"nodes", "nodes", &AuditSizes::nodes},
                                               {"tasks", "tasks", &AuditSizes::tasks},
                                               {"cpus", "CPUs per task", &AuditSizes::cpus},
                                               {"memory", "memory", &AuditSizes::memory_mib},
                                               {"time", "time limit", &AuditSizes::time_min}}};

std::string value_of(const AuditSizes& sizes, const FieldName& field) {
  const Maybe& value = sizes.*field.size;
  if (!value) return "not set";
  if (field.field == "time") return minutes(*value);
  if (field.field != "memory") return std::to_string(*value);
  if (*value == 0) return "all";
  return fmt::format("{} MiB per {}", *value, sizes.memory_per_cpu ? "CPU" : "node");
}

const AuditLeft* left_of(const Audit& audit, std::string_view field) {
  for (const auto& left : audit.left) {
    if (left.field == field) return &left;
  }
  return nullptr;
}

/// One line of the table; empty cells mean that there is nothing to tell about it.
std::vector<std::string> field_row(const Audit& audit, const FieldName& field) {
  const std::string asked = value_of(audit.asked, field);
  const AuditLeft* left = left_of(audit, field.field);
  std::string reason = left != nullptr ? sentence_of(kReasons, left->reason) : "";
  if (left != nullptr && left->reason == "user-set" && field.field == "time") {
    reason = "the user set it, and did not allow a change (--phase-resize=apply,time)";
  }
  if (audit.set.*field.size) return {field.title, asked, value_of(audit.set, field), "changed"};
  if (audit.would.*field.size) {
    return {field.title, asked, value_of(audit.would, field),
            "advised, not changed" + (reason.empty() ? "" : ": " + reason)};
  }
  if (left != nullptr) return {field.title, asked, "-", "left as it was: " + reason};
  if (!(audit.asked.*field.size)) return {};
  const bool with_nodes = field.field == "tasks" && audit.set.nodes;
  return {field.title, asked, "-", with_nodes ? "as many per node as before" : "left as it was"};
}

/// "nodes 4 -> 1, memory 1500 MiB per node -> 272 MiB per node"
std::string changes_of(const Audit& audit, const AuditSizes& to) {
  std::string text;
  for (const auto& field : kFields) {
    if (!(to.*field.size)) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", field.title,
                        value_of(audit.asked, field), value_of(to, field));
  }
  return text;
}

std::string line(const char* label, const std::string& text) {
  return wrap(fmt::format("{:<10}{}", label, text), 10) + '\n';
}

std::string advice_line(const Audit& audit) {
  std::string text = sentence_of(kAdviceStates, audit.advice);
  if (audit.runs) text += ", from " + counted(*audit.runs, "run");
  if (audit.made_s) text += ", made " + format_time(*audit.made_s);
  return text;
}

Json sizes_json(const AuditSizes& sizes) {
  const auto json = [](const Maybe& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"nodes", json(sizes.nodes)},
          {"tasks", json(sizes.tasks)},
          {"cpus_per_task", json(sizes.cpus)},
          {"memory_mib", json(sizes.memory_mib)},
          {"memory_per_cpu", sizes.memory_per_cpu},
          {"time_min", json(sizes.time_min)}};
}

Json audit_json(const Audit& audit) {
  const auto json = [](const Maybe& value) { return value ? Json(*value) : Json(nullptr); };
  Json left = Json::array();
  for (const auto& one : audit.left) {
    left.push_back({{"field", one.field},
                    {"reason", one.reason},
                    {"sentence", sentence_of(kReasons, one.reason)}});
  }
  return {{"profile", audit.profile},
          {"mode", audit.mode},
          {"mode_from", audit.from},
          {"advice", audit.advice},
          {"runs", json(audit.runs)},
          {"made_s", json(audit.made_s)},
          {"asked", sizes_json(audit.asked)},
          {"changed", sizes_json(audit.set)},
          {"advised_only", sizes_json(audit.would)},
          {"left", left}};
}

}  // namespace

std::string why_left(const std::string& reason) { return sentence_of(kReasons, reason); }

namespace {

/// The word behind `key`, e.g. "JobName="; nullopt: there is none.
MaybeText word_behind(const std::string& text, std::string_view key) {
  const auto at = (' ' + text).find(' ' + std::string(key));
  if (at == text.npos) return std::nullopt;
  const auto begin = at + key.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

}  // namespace

JobFacts facts_shown(const std::string& shown) {
  JobFacts facts;
  facts.job_id = std::strtoll(word_behind(shown, "JobId=").value_or("0").c_str(), nullptr, 10);
  facts.name = word_behind(shown, "JobName=");
  const std::string user = word_behind(shown, "UserId=").value_or("");  // "alice(1001)"
  if (!user.empty()) facts.user = user.substr(0, user.find('('));
  facts.source = "slurmctld";
  // To the end of the line: the comment holds blanks, and the audit line skips what it does not
  // know.
  const auto comment = shown.find(" AdminComment=");
  if (comment != shown.npos) facts.admin_comment = shown.substr(comment + 14);
  return facts;
}

std::string submission_line(const JobFacts& job) {
  const auto audit = job.admin_comment ? parse_audit(*job.admin_comment) : std::nullopt;
  if (!audit) return "";
  std::string text = changes_of(*audit, audit->set);
  if (!text.empty()) text += ", by what was learned";
  const std::string wish = changes_of(*audit, audit->would);
  if (!wish.empty()) text += (text.empty() ? "" : "; ") + ("advised only: " + wish);
  if (text.empty()) return "";
  return clean(text) + " (sphase why " + job_label(job) + ")";
}

std::string why_no_audit(const JobFacts& job) {
  if (!job.source) {
    return "the scheduler's record of this job is missing: `sphase-collector merge` asks for it "
           "(slurmctld forgets a job MinJobAge seconds after its end)";
  }
  return std::string(job.admin_comment ? "the AdminComment of this job holds no line of ours"
                                       : "this job has no AdminComment") +
         ": job_submit/phase_resize was not loaded when it was submitted, or resizing was off for "
         "it";
}

std::string why_text(const WhyFacts& facts) {
  const Audit& audit = *facts.audit;
  std::string out = line("Job", fmt::format("{} ({}) of {}", job_label(facts.job),
                                            or_dash(facts.job.name), or_dash(facts.job.user)));
  out += line("Profile", audit.profile.empty() ? "-" : clean(audit.profile));
  const std::string by = audit.from == "job" ? " (by its --phase-resize)" : " (by the site)";
  out += line("Mode", clean(sentence_of(kModes, audit.mode)) + by);
  out += line("Advice", clean(advice_line(audit)));
  if (const AuditLeft* all = left_of(audit, "job")) {
    out += line("Left", "all of it as it was: " + clean(sentence_of(kReasons, all->reason)));
  }
  Table table;
  for (const char* title : {"field", "asked", "advised"}) table.column(title, Table::Align::kLeft);
  table.column("what was done", Table::Align::kLeft);
  for (const auto& field : kFields) {
    auto row = field_row(audit, field);
    for (auto& cell : row) cell = clean(cell);
    if (!row.empty()) table.row(std::move(row));
  }
  if (!table.empty()) out += '\n' + table.print();
  if (!audit.made_s) return out;
  if (facts.runs.empty()) {
    return out + "\nThe runs that it was made from are not known (any more).\n";
  }
  return out + "\nMade from these runs, the newest first\n" + observed_text(facts.runs, kRunsShown);
}

std::string why_json(const WhyFacts& facts) {
  const Json out = {{"cluster", facts.job.cluster},
                    {"job_id", facts.job.job_id},
                    {"job_name", facts.job.name ? Json(*facts.job.name) : Json(nullptr)},
                    {"audit", facts.audit ? audit_json(*facts.audit) : Json(nullptr)},
                    {"missing", facts.audit ? Json(nullptr) : Json(why_no_audit(facts.job))},
                    {"runs", observed_json(facts.runs)}};
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace sphase
