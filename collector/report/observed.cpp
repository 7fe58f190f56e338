#include "collector/report/observed.h"

#include <fmt/format.h>

#include <cmath>

#include "collector/report/format.h"
#include "collector/report/table.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

struct FlagName {
  std::uint32_t bit;
  const char* word;
  const char* sentence;
};
constexpr FlagName kFlags[] = {
    {kObservedOom, "oom", "killed for memory"},
    {kObservedTimeout, "timeout", "reached its time limit"},
    {kObservedFailed, "failed", "failed or cancelled"},
    {kObservedPartial, "partial", "some nodes told nothing"},
    {kObservedUnclosed, "unclosed", "never ended by its program"},
};

template <typename T>
Json json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  return format_duration(std::llround(seconds * 1e9));
}

Json observation_json(const Observation& seen) {
  Json flags = Json::array();
  for (const auto& flag : kFlags) {
    if (seen.flags & flag.bit) flags.push_back(flag.word);
  }
  return {{"path", seen.path},
          {"nodes", seen.nodes},
          {"nodes_used", seen.nodes_used},
          {"tasks", json(seen.tasks)},
          {"duration_s", seen.duration_s},
          {"cpu_time_s", json(seen.cpu_time_s)},
          {"cpus_busy", json(seen.cpus_busy)},
          {"memory_peak_bytes", json(seen.memory_peak_bytes)},
          {"memory_limit_bytes", json(seen.memory_limit_bytes)},
          {"flags", flags}};
}

}  // namespace

std::string ending_of(std::uint32_t flags) {
  std::string text;
  for (const auto& flag : kFlags) {
    if (flags & flag.bit) text += (text.empty() ? "" : ", ") + std::string(flag.sentence);
  }
  return text.empty() ? "well" : text;
}

std::string observed_text(const std::vector<ObservedJob>& runs, std::size_t most) {
  Table table;
  table.column("job", Table::Align::kLeft);
  table.column("ended", Table::Align::kLeft);
  for (const char* title : {"nodes", "used", "time", "peak", "given"}) {
    table.column(title, Table::Align::kRight);
  }
  table.column("how it ended", Table::Align::kLeft);
  std::size_t shown = 0;
  for (auto run = runs.rbegin(); run != runs.rend() && shown < most; ++run, ++shown) {
    const Observation job = run->phases.empty() ? Observation() : run->phases.front();
    table.row({std::to_string(run->job_id), format_time(run->end_s), std::to_string(job.nodes),
               std::to_string(job.nodes_used), duration(job.duration_s),
               or_dash(job.memory_peak_bytes, format_bytes),
               or_dash(job.memory_limit_bytes, format_bytes), ending_of(job.flags)});
  }
  std::string out = table.print();
  if (runs.size() > shown) out += fmt::format("… and {} earlier ones\n", runs.size() - shown);
  return out;
}

nlohmann::ordered_json observed_json(const std::vector<ObservedJob>& runs) {
  Json list = Json::array();
  for (const auto& run : runs) {
    Json phases = Json::array();
    for (const auto& phase : run.phases) phases.push_back(observation_json(phase));
    list.push_back({{"cluster", run.cluster},
                    {"job_id", run.job_id},
                    {"restart_count", run.restart_count},
                    {"submit_time_s", run.submit_s != 0 ? Json(run.submit_s) : Json(nullptr)},
                    {"start_time_s", run.start_s},
                    {"end_time_s", run.end_s},
                    {"job_name", run.name},
                    {"partition", run.partition},
                    {"nodes_asked", json(run.nodes_asked)},
                    {"phases", phases}});
  }
  return list;
}

}  // namespace sphase
