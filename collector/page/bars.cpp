#include "collector/page/bars.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace sphase {
namespace {

constexpr int kMostRows = 40;
/// Nobody has a screen of this many pixels: what is nearer than one of them may be joined.
constexpr std::int64_t kWidestScreen = 8192;

using Marks = std::vector<const PhaseMark*>;

Bar bar_of(const PhaseMark& mark) {
  Bar bar;
  bar.path = mark.path;
  bar.shell = mark.shell;
  bar.number = mark.folded() ? 0 : mark.number;
  bar.begin_ns = mark.begin_ns;
  bar.end_ns = mark.end_ns;
  bar.count = 0;
  return bar;
}

void add_task(Bar& bar, const PhaseMark& mark) {
  bar.begin_ns = std::min(bar.begin_ns, mark.begin_ns);
  bar.end_ns = std::max(bar.end_ns, mark.end_ns);
  bar.count = std::max(bar.count, mark.folded() ? mark.count : 1);
  bar.flags |= mark.flags;
  ++bar.tasks;
  add(bar.cpu_time_ns, mark.cpu_time_ns, bar.flags);
  if (mark.memory_peak_bytes) {
    bar.memory_peak_bytes = std::max(bar.memory_peak_bytes.value_or(0), *mark.memory_peak_bytes);
  }
  bar.events.add_part(mark.counts);
}

/// Puts bars into rows: that of their depth, or the next one that is free.
void place(std::vector<std::pair<std::int64_t, Bar>>& deep, RunBars& out) {
  std::stable_sort(deep.begin(), deep.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.second.begin_ns, a.first, -a.second.end_ns) <
           std::tuple(b.second.begin_ns, b.first, -b.second.end_ns);
  });
  std::vector<std::int64_t> taken_ns;  // [row]
  for (auto& [depth, bar] : deep) {
    auto row = static_cast<std::size_t>(std::clamp<std::int64_t>(depth, 0, kMostRows - 1));
    while (row < taken_ns.size() && taken_ns[row] > bar.begin_ns && row + 1 < kMostRows) ++row;
    if (row >= taken_ns.size()) taken_ns.resize(row + 1, bar.begin_ns);
    taken_ns[row] = std::max(taken_ns[row], bar.end_ns);
    bar.row = static_cast<int>(row);
    out.rows = std::max(out.rows, bar.row + 1);
    out.bars.push_back(std::move(bar));
  }
}

RunBars bars_of(const Marks& marks, int row_before) {
  std::map<std::tuple<bool, std::string_view, std::int64_t>, std::size_t> known;
  std::vector<std::pair<std::int64_t, Bar>> deep;  // with their depth
  // What a program marks inside a phase of the job script is as deep as that says; the script's own
  // phases are in another lane.
  std::int64_t shallowest = marks.empty() ? 0 : marks.front()->depth;
  for (const PhaseMark* mark : marks) shallowest = std::min(shallowest, mark->depth);
  for (const PhaseMark* mark : marks) {
    const std::int64_t number = mark->folded() ? 0 : mark->number;
    const auto [at, fresh] = known.try_emplace({mark->shell, mark->path, number}, deep.size());
    const std::int64_t depth = mark->depth - shallowest + row_before;
    if (fresh) deep.emplace_back(depth, bar_of(*mark));
    add_task(deep[at->second].second, *mark);
  }
  RunBars out;
  place(deep, out);
  return out;
}

/// The lane of the job: what the script marked.
RunBars job_bars(const Run* run, const std::vector<PhaseMark>& phases) {
  Marks marks;
  for (const auto& mark : phases) {
    if (mark.shell) marks.push_back(&mark);
  }
  RunBars out = bars_of(marks, 0);
  out.run = run;
  out.of_job = true;
  return out;
}

/// In the lane of its node: the run itself is row 0.
RunBars node_bars(const Run& run) {
  Marks marks;
  for (const auto& mark : run.phases) {
    if (!(mark.shell && run.of_script())) marks.push_back(&mark);
  }
  RunBars out = bars_of(marks, 1);
  out.run = &run;
  return out;
}

/// Runs of a node that overlap go below each other.
void stack(std::vector<RunBars*>& runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const RunBars* a, const RunBars* b) {
    return std::tuple(a->run->begin_ns, !a->run->of_script()) <
           std::tuple(b->run->begin_ns, !b->run->of_script());
  });
  struct Track {
    std::int64_t end_ns;
    int rows;
    std::vector<RunBars*> runs;
  };
  std::vector<Track> tracks;
  for (RunBars* one : runs) {
    auto track = std::find_if(tracks.begin(), tracks.end(),
                              [&](const Track& t) { return t.end_ns <= one->run->begin_ns; });
    if (track == tracks.end()) track = tracks.insert(track, Track{});
    track->end_ns = one->run->end_ns;
    track->rows = std::max(track->rows, one->rows);
    track->runs.push_back(one);
  }
  int first = 0;
  for (const auto& track : tracks) {
    for (RunBars* one : track.runs) one->first_row = first;
    first += track.rows;
  }
}

/// Joins bars of the same path and row that are shorter than a pixel and less than one apart.
void join(RunBars& run, std::int64_t pixel_ns) {
  std::map<std::pair<int, std::string>, std::size_t> last;
  std::vector<Bar> kept;
  for (auto& bar : run.bars) {
    const auto [at, fresh] = last.try_emplace({bar.row, bar.path}, kept.size());
    const bool tiny = bar.end_ns - bar.begin_ns < pixel_ns;
    if (fresh || !tiny || bar.begin_ns - kept[at->second].end_ns >= pixel_ns) {
      at->second = kept.size();
      kept.push_back(std::move(bar));
      continue;
    }
    Bar& into = kept[at->second];
    into.number = 0;
    into.count += bar.count;
    into.end_ns = std::max(into.end_ns, bar.end_ns);
    into.flags |= bar.flags;
    into.tasks = std::max(into.tasks, bar.tasks);
    add(into.cpu_time_ns, bar.cpu_time_ns, into.flags);
    if (bar.memory_peak_bytes) {
      into.memory_peak_bytes = std::max(into.memory_peak_bytes.value_or(0), *bar.memory_peak_bytes);
    }
    into.events.add(bar.events);
  }
  run.bars = std::move(kept);
}

std::size_t count_bars(const Lanes& lanes) {
  std::size_t count = 0;
  for (const auto& run : lanes.runs) count += run.bars.size();
  return count;
}

}  // namespace

Lanes lanes_of(const Timeline& timeline, std::size_t most) {
  Lanes lanes;
  if (!timeline.leader_phases.empty()) {
    lanes.runs.push_back(job_bars(nullptr, timeline.leader_phases));
  }
  for (const auto& run : timeline.runs) {
    if (run.of_script()) lanes.runs.push_back(job_bars(&run, run.phases));
    lanes.runs.push_back(node_bars(run));
  }
  std::map<std::string_view, std::vector<RunBars*>> nodes;
  for (auto& one : lanes.runs) {
    if (!one.of_job) nodes[one.run->node].push_back(&one);
  }
  for (auto& [node, runs] : nodes) stack(runs);
  const std::int64_t span_ns = std::max<std::int64_t>(1, timeline.end_ns - timeline.begin_ns);
  for (std::int64_t pixel_ns = std::max<std::int64_t>(1, span_ns / kWidestScreen);
       count_bars(lanes) > most && pixel_ns / 2 < span_ns; pixel_ns *= 2) {
    for (auto& run : lanes.runs) join(run, pixel_ns);
    lanes.joined_ns = pixel_ns;
  }
  return lanes;
}

}  // namespace sphase
