#include "cli/advice_print.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collector/learn/reason.h"
#include "collector/report/format.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

std::string duration(double seconds) {
  return seconds > 0 && seconds < 1e9 ? format_duration(std::llround(seconds * 1e9)) : "-";
}

std::string interval(const TimeRange& time) {
  return time.expected > 0 ? duration(time.low) + " to " + duration(time.high) : "-";
}

std::string bytes(std::int64_t value) { return value > 0 ? format_bytes(value) : "-"; }
std::string number(std::int64_t value) { return value > 0 ? std::to_string(value) : "-"; }

/// "Label      text", longer text on further lines below its beginning.
std::string line(const char* label, const std::string& text) {
  return wrap(fmt::format("{:<12}{}", label, text), 12) + '\n';
}

std::string what_is_advised(const AdviceHeader& head) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (head.nodes > 0) add(counted(head.nodes, "node"));
  if (head.cpus_per_node > 0) add(counted(head.cpus_per_node, "CPU") + " per node");
  if (head.memory_bytes > 0) {
    add(format_bytes(static_cast<std::int64_t>(head.memory_bytes)) + " of memory per node");
  }
  if (head.time_limit_s > 0) add("a time limit of " + duration(head.time_limit_s));
  return text.empty() ? "nothing" : text;
}

std::string summary(const Learned& learned) {
  const AdviceHeader& head = learned.packed.head;
  const ObservedJob& last = learned.runs.back();
  std::string out = line("Profile", clean(learned.profile));
  out += line("Last run", fmt::format("job {} ({}) on partition {}, ended {}", last.job_id,
                                      last.name.empty() ? "no name" : clean(last.name),
                                      last.partition.empty() ? "-" : clean(last.partition),
                                      format_time(last.end_s)));
  out += line("Policy", head.policy);
  out += line("Known", learned.advice.reason);
  if (!learned.advice.enough) {
    return out + line("Advice",
                      "none yet: run the job again until there are runs enough (they "
                      "must end well)");
  }
  out += line("Advice", what_is_advised(head));
  if (head.time_s > 0) {
    out += line("Expected", fmt::format("{} in all; 4 of 5 runs take {}", duration(head.time_s),
                                        interval(learned.advice.job.best.time)));
  }
  if (learned.advice.job.memory_peak_bytes > 0) {
    out += line("Peak", bytes(learned.advice.job.memory_peak_bytes) +
                            " on the fullest node of any "
                            "run");
  }
  if (head.confidence > 0) {
    out += line("Confidence", format_percent(static_cast<double>(head.confidence)) +
                                  " of the last runs would have fitted into what was advised "
                                  "before them");
  }
  if (head.flags & kAdviceOom) {
    out += line("Note",
                "a run was killed for memory and fewer than 3 good ones are known since: "
                "memory is raised");
  }
  if (head.flags & kAdviceTimeout) {
    out += line("Note", "a run reached its time limit: how long it would have taken is not known");
  }
  return out;
}

std::string plan_table(const ProfileAdvice& advice) {
  if (advice.phases.empty() || !advice.enough) return "";
  Table table;
  table.column("phase", Table::Align::kLeft);
  for (const char* title : {"nodes", "time", "4 of 5 runs take", "memory", "CPUs", "runs"}) {
    table.column(title, Table::Align::kRight);
  }
  table.column("", Table::Align::kLeft);
  for (const auto& phase : advice.phases) {
    table.row({clean(phase.path), number(phase.best.nodes), duration(phase.best.time.expected),
               interval(phase.best.time), bytes(phase.memory_bytes),
               phase.cpus_busy > 0 ? format_number(phase.cpus_busy) : "-",
               std::to_string(phase.runs), ""});
  }
  return "\nPlan: the best size of each phase\n" + table.print();
}

std::string sizes_table(const PhaseAdvice& phase, const std::string& title) {
  if (phase.sizes.empty()) return "";
  Table table;
  for (const char* column : {"nodes", "time", "4 of 5 runs take", "node-seconds", "efficiency"}) {
    table.column(column, Table::Align::kRight);
  }
  table.column("", Table::Align::kLeft);
  for (const auto& size : phase.sizes) {
    table.row({std::to_string(size.nodes), duration(size.time.expected), interval(size.time),
               format_number(static_cast<double>(size.nodes) * size.time.expected),
               size.efficiency > 0 ? format_percent(size.efficiency) : "-",
               size.nodes == phase.best.nodes ? "best" : ""});
  }
  return "\nSizes of " + title + "\n" + table.print();
}

template <typename T>
Json known(T value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json time_json(const TimeRange& time) {
  if (time.expected <= 0) return nullptr;
  return {{"expected_s", time.expected}, {"low_s", time.low}, {"high_s", time.high}};
}

Json phase_json(const PhaseAdvice& phase, bool with_sizes) {
  Json out = {{"path", phase.path},
              {"runs", phase.runs},
              {"nodes", known(phase.best.nodes)},
              {"time", time_json(phase.best.time)},
              {"efficiency_ratio", known(phase.best.efficiency)},
              {"memory_peak_bytes", known(phase.memory_peak_bytes)},
              {"memory_bytes", known(phase.memory_bytes)},
              {"cpus_busy", known(phase.cpus_busy)}};
  if (phase.model.known()) {
    const auto& terms = phase.model.coefficients();
    out["model"] = {{"constant_s", terms[0]},
                    {"per_node_share_s", terms[1]},
                    {"per_node_s", terms[2]},
                    {"nodes_least", phase.model.nodes_least()},
                    {"nodes_most", phase.model.nodes_most()},
                    {"has_shape", phase.model.has_shape()}};
  }
  if (!with_sizes) return out;
  out["sizes"] = Json::array();
  for (const auto& size : phase.sizes) {
    out["sizes"].push_back({{"nodes", size.nodes},
                            {"time", time_json(size.time)},
                            {"efficiency_ratio", known(size.efficiency)}});
  }
  return out;
}

}  // namespace

std::string advice_text(const Learned& learned, bool sizes) {
  std::string out = summary(learned) + plan_table(learned.advice);
  if (!sizes) return out;
  std::string tables = sizes_table(learned.advice.job, "the whole job");
  for (const auto& phase : learned.advice.phases) tables += sizes_table(phase, clean(phase.path));
  return out + (tables.empty() ? "\nNo sizes can be compared: no run is known that ended well.\n"
                               : tables);
}

std::string advice_json(const Learned& learned, bool sizes) {
  const AdviceHeader& head = learned.packed.head;
  Json phases = Json::array();
  for (const auto& phase : learned.advice.phases) phases.push_back(phase_json(phase, sizes));
  const Json advised = {{"nodes", known(head.nodes)},
                        {"cpus_per_node", known(head.cpus_per_node)},
                        {"memory_bytes", known(head.memory_bytes)},
                        {"time_limit_s", known(head.time_limit_s)}};
  const Json out = {{"profile", learned.profile},
                    {"partition", head.partition},
                    {"made_s", head.made_s},
                    {"expires_s", head.expires_s},
                    {"policy", head.policy},
                    {"runs", learned.advice.runs},
                    {"enough", learned.advice.enough},
                    {"reason", learned.advice.reason},
                    {"confidence_ratio", learned.advice.confidence},
                    {"killed_for_memory", (head.flags & kAdviceOom) != 0},
                    {"reached_time_limit", (head.flags & kAdviceTimeout) != 0},
                    {"advice", learned.advice.enough ? advised : Json(nullptr)},
                    {"job", phase_json(learned.advice.job, sizes)},
                    {"phases", phases}};
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace sphase
