// What the lanes show: runs with their phases, and times without samples.
#include <algorithm>
#include <map>
#include <set>

#include "collector/page/bars.h"
#include "collector/page/page_json.h"

namespace sphase {
namespace {

/// The names of all events that bars counted, by name.
std::vector<std::string> event_names(const Lanes& lanes) {
  std::set<std::string> names;
  for (const auto& run : lanes.runs) {
    for (const auto& bar : run.bars) {
      for (const auto& event : bar.events.events()) names.insert(event.name);
    }
  }
  return {names.begin(), names.end()};
}

/// [[count or null of each event], tasks that knew them all]; null: nothing was counted.
Json counts_of(const Bar& bar, const std::vector<std::string>& events) {
  if (bar.events.empty()) return nullptr;
  Json counts = Json::array();
  for (const auto& event : events) counts.push_back(json_or_null(bar.events.count(event)));
  return counts;
}

Json maybe_us(const Maybe& time_ns) { return time_ns ? Json(*time_ns / 1000) : Json(nullptr); }

/// [run, row, path, shell, number, begin_us, length_us, count, tasks, flags, cpu_time_us,
/// memory_peak_bytes, counts]
Json bar_json(PageStart& start, const Bar& bar, std::size_t run,
              const std::vector<std::string>& events) {
  const std::int64_t begin_us = start.us(bar.begin_ns);
  return {run,
          bar.row,
          start.texts.index(bar.path),
          bar.shell ? 1 : 0,
          bar.number,
          begin_us,
          start.us(bar.end_ns) - begin_us,
          bar.count,
          bar.tasks,
          bar.flags,
          maybe_us(bar.cpu_time_ns),
          json_or_null(bar.memory_peak_bytes),
          counts_of(bar, events)};
}

/// [node or -1 = the lane of the job, step, begin_us, end_us, first row, rows, state, tasks,
/// markers, dropped markers, dropped samples, no run of its own]
Json run_json(PageStart& start, const RunBars& one) {
  if (one.run == nullptr) return {-1, -1, 0, 0, 0, one.rows, "ended", nullptr, 0, 0, 0};
  const Run& run = *one.run;
  const char* state = run.lost      ? "lost"
                      : !run.ended  ? "running"
                      : run.killed  ? "killed"
                      : run.crashed ? "crashed"
                                    : "ended";
  const Json node = one.of_job ? Json(-1) : Json(start.node(run.node));
  return {node,
          start.texts.index(run.step),
          start.us(run.begin_ns),
          start.us(run.end_ns),
          one.first_row,
          one.rows,
          state,
          json_or_null(run.node_tasks),
          run.markers,
          run.markers_dropped + run.markers_invalid,
          run.samples_dropped};
}

/// [node, step, begin_us, end_us, why]
Json gaps_json(PageStart& start) {
  Json gaps = Json::array();
  for (const auto& run : start.timeline.runs) {
    const auto add = [&](std::int64_t begin_ns, std::int64_t end_ns, const char* why) {
      if (gaps.size() >= start.limits.runs || end_ns <= begin_ns) return;
      gaps.push_back({start.node(run.node), start.texts.index(run.step), start.us(begin_ns),
                      start.us(end_ns), why});
    };
    for (const auto& [begin_ns, end_ns] : sample_gaps(run)) add(begin_ns, end_ns, "no samples");
    if (run.lost) add(run.end_ns, start.timeline.end_ns, "recorder lost");
  }
  return gaps;
}

/// The runs that fit: the longest ones, in the order in which they came.
std::vector<const RunBars*> shown_runs(const Lanes& lanes, std::size_t most) {
  std::vector<const RunBars*> shown;
  for (const auto& one : lanes.runs) {
    if (!one.of_job || !one.bars.empty()) shown.push_back(&one);
  }
  if (shown.size() <= most) return shown;
  const auto length = [](const RunBars* one) {
    return one->of_job ? INT64_MAX : one->run->end_ns - one->run->begin_ns;
  };
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const RunBars* a, const RunBars* b) { return length(a) > length(b); });
  shown.resize(most);
  return shown;
}

}  // namespace

Json lanes_json(PageStart& start) {
  const Lanes lanes = lanes_of(start.timeline, start.limits.bars);
  const auto events = event_names(lanes);
  const auto shown = shown_runs(lanes, start.limits.runs);
  Json runs = Json::array(), bars = Json::array();
  for (const RunBars* one : shown) {
    for (const auto& bar : one->bars) bars.push_back(bar_json(start, bar, runs.size(), events));
    runs.push_back(run_json(start, *one));
  }
  return {{"runs", std::move(runs)},
          {"bars", std::move(bars)},
          {"joined_us", lanes.joined_ns / 1000},
          {"runs_left_out",
           lanes.runs.size() > start.limits.runs ? lanes.runs.size() - start.limits.runs : 0},
          {"events", events},
          {"gaps", gaps_json(start)}};
}

}  // namespace sphase
