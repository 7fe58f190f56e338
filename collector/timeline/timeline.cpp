#include "collector/timeline/timeline.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "collector/timeline/missing.h"
#include "collector/timeline/node_use.h"
#include "collector/timeline/phase_tree.h"
#include "collector/timeline/timeline_load.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kNamed = 8;  // so many choices are named in an error

/// Takes digits off the front.
Maybe take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

bool is_running(const JobFacts& job, const std::vector<Run>& runs) {
  if (job.source) return !job.end_s && job.start_s;
  return std::any_of(runs.begin(), runs.end(),
                     [](const Run& run) { return !run.ended && !run.lost; });
}

void set_times(Timeline& timeline) {
  const JobFacts& job = timeline.job;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (const auto& run : timeline.runs) {
    first = std::min(first, run.begin_ns);
    last = std::max(last, run.end_ns);
  }
  timeline.running = is_running(job, timeline.runs);
  if (timeline.runs.empty()) first = last = 0;
  timeline.begin_ns = job.start_s ? *job.start_s * kSecond : first;
  timeline.end_ns = last;
  if (job.end_s) {
    timeline.end_ns = *job.end_s * kSecond;
    // The record's second, and a moment more if a step saw it.
    if (last > timeline.end_ns) timeline.end_ns = std::min(last, timeline.end_ns + kSecond);
  } else if (timeline.runs.empty() && timeline.running) {
    timeline.end_ns = job.seen_ns.value_or(timeline.begin_ns);
  }
  timeline.end_ns = std::max(timeline.end_ns, timeline.begin_ns);
}

/// Where the records name no nodes, those that sent telemetry.
void deduce_nodes(Timeline& timeline) {
  if (timeline.allocations.empty() && !timeline.runs.empty()) {
    Allocation whole;
    whole.begin_ns = timeline.begin_ns;
    if (!timeline.running) whole.end_ns = timeline.end_ns;
    timeline.allocations.push_back(std::move(whole));
  }
  for (auto& allocation : timeline.allocations) {
    if (!allocation.nodes.empty() || allocation.node_count == 0) continue;
    const std::int64_t end_ns = allocation.end_ns.value_or(timeline.end_ns) + kSecond;
    std::set<std::string> nodes;
    for (const auto& run : timeline.runs) {
      if (run.begin_ns < end_ns && run.end_ns > allocation.begin_ns) nodes.insert(run.node);
    }
    for (const auto& node : nodes) allocation.nodes.push_back({node, {}, {}});
    allocation.deduced = true;
  }
}

const PhaseTree* find_step(const PhaseTree& tree, const std::string& step) {
  if (tree.row.kind == UsageRow::Kind::kStep && tree.row.step == step) return &tree;
  for (const auto& inner : tree.inside) {
    if (const auto* found = find_step(inner, step)) return found;
  }
  return nullptr;
}

Status build_rows(Timeline& timeline, const std::string& step) {
  const PhaseTree tree = build_phase_tree(timeline);
  const PhaseTree* shown = &tree;
  if (!step.empty()) shown = find_step(tree, step);
  if (shown == nullptr) {
    std::set<std::string> steps;
    for (const auto& run : timeline.runs) steps.insert(run.step);
    std::string names;
    for (const auto& name : steps) names += (names.empty() ? "" : ", ") + name;
    return Error{"job " + std::to_string(timeline.job.job_id) + " has no step " + step +
                 (names.empty() ? "" : "; recorded are: " + names)};
  }
  timeline.nodes = tree.row.nodes;
  timeline.detail = flatten(*shown);
  timeline.rows = flatten(summarise(*shown));
  return Done{};
}

/// The script of a heterogeneous job runs in its first component, and its phases are of all.
Status load_leader_phases(Database& db, Timeline& timeline) {
  const JobFacts& job = timeline.job;
  if (!job.het_job_id || *job.het_job_id == job.job_id) return Done{};
  auto keys = load_run_keys(db, {job.cluster, *job.het_job_id});
  if (!keys) return Error{keys.error()};
  std::vector<std::int64_t> scripts;
  for (const auto& key : *keys) {
    const bool script = key.step == kStepBatch || key.step == kStepInteractive;
    const bool same_time = key.begin_ns >= timeline.begin_ns - 60 * kSecond &&
                           key.begin_ns <= timeline.end_ns + kSecond;
    if (script && same_time && key.restart_count == job.restart_count) {
      scripts.push_back(key.run_id);
    }
  }
  auto runs = load_runs(db, scripts, {});
  if (!runs) return Error{runs.error()};
  for (const auto& run : *runs) {
    for (const auto& mark : run.phases) {
      if (mark.shell) timeline.leader_phases.push_back(mark);
    }
  }
  return Done{};
}

/// Of each node that of its first run. By node.
std::vector<NodeClock> clocks_of(const std::vector<Run>& runs) {
  std::map<std::string, const Run*> first;
  for (const auto& run : runs) {
    if (!run.clock_offset_ns || !run.clock_band_ns) continue;
    const Run*& known = first[run.node];
    if (known == nullptr || run.begin_ns < known->begin_ns) known = &run;
  }
  std::vector<NodeClock> clocks;
  for (const auto& [node, run] : first) {
    clocks.push_back({node, *run->clock_offset_ns, *run->clock_band_ns});
  }
  return clocks;
}

Result<Timeline> load_start(Database& db, const JobNumber& job, const JobStart& start,
                            const std::vector<RecordKey>& records, const std::vector<RunKey>& runs,
                            const std::string& step) {
  Timeline timeline;
  timeline.job.cluster = job.cluster;
  timeline.job.job_id = job.job_id;
  timeline.job.restart_count = start.restart_count;
  if (start.record) {
    auto loaded = load_record(db, job, records[*start.record], timeline);
    if (!loaded) return Error{loaded.error()};
  }
  std::vector<std::int64_t> ids;
  for (const auto i : start.runs) ids.push_back(runs[i].run_id);
  if (!ids.empty()) {
    if (auto facts = load_facts_of_run(db, ids.front(), timeline.job); !facts) {
      return Error{facts.error()};
    }
  }
  Maybe job_end_ns;
  if (timeline.job.end_s) job_end_ns = *timeline.job.end_s * kSecond;
  auto loaded = load_runs(db, ids, job_end_ns);
  if (!loaded) return Error{loaded.error()};
  timeline.runs = std::move(*loaded);
  timeline.clocks = clocks_of(timeline.runs);
  set_times(timeline);
  if (auto notices = load_notices(db, job, start, runs, timeline); !notices) {
    return Error{notices.error()};
  }
  if (auto phases = load_leader_phases(db, timeline); !phases) return Error{phases.error()};
  deduce_nodes(timeline);
  if (auto built = build_rows(timeline, step); !built) return Error{built.error()};
  timeline.missing = find_missing(timeline);
  auto problems = load_source_problems(db, timeline);
  if (!problems) return Error{problems.error()};
  timeline.missing.insert(timeline.missing.end(), problems->begin(), problems->end());
  return timeline;
}

/// Starts of the last submission of this number only.
void keep_latest(std::vector<JobStart>& starts, const std::vector<RecordKey>& records) {
  const JobStart& last = starts.back();
  if (last.record) {
    const std::int64_t submit = records[*last.record].submit_s;
    std::erase_if(starts, [&](const JobStart& start) {
      return !start.record || records[*start.record].submit_s != submit;
    });
    return;
  }
  // Without records the restart count alone tells submissions apart: it begins anew.
  std::size_t first = starts.size() - 1;
  while (first > 0 && !starts[first - 1].record &&
         starts[first - 1].restart_count < starts[first].restart_count) {
    --first;
  }
  starts.erase(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(first));
}

Result<std::vector<Timeline>> load_number(Database& db, const JobNumber& job,
                                          const JobSelector& selector) {
  auto records = load_record_keys(db, job);
  if (!records) return Error{records.error()};
  auto runs = load_run_keys(db, job);
  if (!runs) return Error{runs.error()};
  auto starts = match_runs(*records, *runs);
  if (starts.empty()) starts.push_back({});  // notices alone
  const std::size_t known = starts.size();
  if (!selector.every) keep_latest(starts, *records);
  std::vector<Timeline> timelines;
  for (const auto& start : starts) {
    auto timeline = load_start(db, job, start, *records, *runs, selector.step);
    if (!timeline) return Error{timeline.error()};
    timeline->starts = static_cast<int>(starts.size());
    timelines.push_back(std::move(*timeline));
  }
  if (known > starts.size()) {
    timelines.back().missing.push_back("job id " + std::to_string(job.job_id) +
                                       " was used before by " +
                                       std::to_string(known - starts.size()) +
                                       " other start(s), not shown here: --all shows them");
  }
  return timelines;
}

Result<std::string> known_jobs(Database& db) {
  auto row = db.prepare(
      "SELECT job_id FROM (SELECT job_id, max(start_ns) AS at FROM run GROUP BY job_id UNION ALL"
      " SELECT job_id, max(submit_time) * 1000000000 FROM job GROUP BY job_id)"
      " GROUP BY job_id ORDER BY max(at) DESC LIMIT 9");
  if (!row) return Error{row.error()};
  std::string names;
  for (std::size_t count = 0; row->step(); ++count) {
    if (count < kNamed) names += (names.empty() ? "" : ", ") + row->text(0);
    if (count == kNamed) names += ", …";
  }
  return names.empty() ? "no job is known yet: `sphase-collector merge` brings some in"
                       : "known are " + names + " (`sphase jobs` lists all)";
}

/// Several tasks of an array, or one number in several clusters: the user has to say which.
Status one_job(Database& db, const std::vector<JobNumber>& jobs, const JobSelector& selector) {
  if (jobs.size() <= 1 || selector.every) return Done{};
  std::set<std::string> clusters;
  for (const auto& job : jobs) clusters.insert(job.cluster);
  if (clusters.size() > 1) {
    std::string names;
    for (const auto& name : clusters) names += (names.empty() ? "" : ", ") + name;
    return Error{"job " + std::to_string(selector.job_id) +
                 " is known in several clusters: choose with --cluster (" + names + ")"};
  }
  auto row = db.prepare(
      "SELECT DISTINCT array_task_id FROM (SELECT array_job_id, array_task_id FROM run UNION SELECT"
      " array_job_id, array_task_id FROM job) WHERE array_job_id = ? AND array_task_id IS NOT NULL"
      " ORDER BY 1");
  if (!row) return Error{row.error()};
  row->bind(1, selector.job_id);
  std::string names;
  std::size_t count = 0;
  while (row->step()) {
    if (count < kNamed) {
      names += (names.empty() ? "" : ", ") + std::to_string(selector.job_id) + '_' + row->text(0);
    }
    ++count;
  }
  if (count <= 1) return Done{};  // components of a heterogeneous job: all are shown
  return Error{std::to_string(selector.job_id) + " is a job array: choose a task (" + names +
               (count > kNamed ? ", …" : "") + "), or --all for every one"};
}

}  // namespace

Result<JobSelector> parse_job_selector(const std::string& text) {
  const Error wrong{"'" + text +
                    "' is not a job: right are 123, 123_4 (array task), 123+1 "
                    "(component), each with .STEP if only one step is meant"};
  JobSelector selector;
  std::string_view rest = text;
  const Maybe job = take_number(rest);
  if (!job || *job == 0) return wrong;
  selector.job_id = *job;
  if (rest.starts_with('_') || rest.starts_with('+')) {
    const bool array = rest.front() == '_';
    rest.remove_prefix(1);
    (array ? selector.array_task : selector.het_offset) = take_number(rest);
    if (!selector.array_task && !selector.het_offset) return wrong;
  }
  if (rest.starts_with('.')) {
    selector.step = rest.substr(1);
    if (selector.step.empty()) return wrong;
    rest = {};
  }
  if (!rest.empty()) return wrong;
  return selector;
}

Result<std::vector<Timeline>> load_timelines(Database& db, const JobSelector& selector) {
  auto jobs = find_jobs(db, selector);
  if (!jobs) return Error{jobs.error()};
  if (jobs->empty()) {
    auto known = known_jobs(db);
    if (!known) return Error{known.error()};
    return Error{"job " + std::to_string(selector.job_id) + " is not known; " + *known};
  }
  if (auto one = one_job(db, *jobs, selector); !one) return Error{one.error()};
  std::vector<Timeline> timelines;
  for (const auto& job : *jobs) {
    auto loaded = load_number(db, job, selector);
    if (!loaded) return Error{loaded.error()};
    std::move(loaded->begin(), loaded->end(), std::back_inserter(timelines));
  }
  return timelines;
}

}  // namespace sphase
