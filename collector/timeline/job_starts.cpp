#include "collector/timeline/job_starts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlackNs = 2 * kSecond;

bool started_in(const RunKey& run, const RecordKey& record) {
  if (run.restart_count != record.restart_count || !record.start_s) return false;
  if (run.begin_ns < *record.start_s * kSecond - kSlackNs) return false;
  return !record.end_s || run.begin_ns <= (*record.end_s + 1) * kSecond + kSlackNs;
}

/// The latest record that fits: an older one whose end nobody saw would take everything.
std::optional<std::size_t> record_of(const RunKey& run, const std::vector<RecordKey>& records) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!started_in(run, records[i])) continue;
    if (!best || *records[i].start_s > *records[*best].start_s) best = i;
  }
  return best;
}

void group_unrecorded(const std::vector<std::size_t>& loose, const std::vector<RunKey>& runs,
                      std::vector<JobStart>& starts) {
  std::map<std::int64_t, std::vector<std::size_t>> by_restart;
  for (const auto i : loose) by_restart[runs[i].restart_count].push_back(i);
  for (auto& [restart, members] : by_restart) {
    std::sort(members.begin(), members.end(),
              [&](std::size_t a, std::size_t b) { return runs[a].begin_ns < runs[b].begin_ns; });
    std::set<std::pair<std::string, std::string>> seen;
    JobStart start;
    for (const auto i : members) {
      if (!seen.emplace(runs[i].step, runs[i].node).second) {
        starts.push_back(std::move(start));
        start = {};
        seen = {{runs[i].step, runs[i].node}};
      }
      if (start.runs.empty()) start.begin_ns = runs[i].begin_ns;
      start.restart_count = restart;
      start.runs.push_back(i);
    }
    starts.push_back(std::move(start));
  }
}

}  // namespace

std::vector<JobStart> match_runs(const std::vector<RecordKey>& records,
                                 const std::vector<RunKey>& runs) {
  std::vector<JobStart> starts(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    starts[i].record = i;
    starts[i].restart_count = records[i].restart_count;
    // One that has not started yet comes last.
    starts[i].begin_ns = records[i].start_s ? *records[i].start_s * kSecond
                                            : std::numeric_limits<std::int64_t>::max();
  }
  std::vector<std::size_t> loose;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (const auto record = record_of(runs[i], records)) {
      starts[*record].runs.push_back(i);
    } else {
      loose.push_back(i);
    }
  }
  group_unrecorded(loose, runs, starts);
  std::stable_sort(starts.begin(), starts.end(),
                   [](const JobStart& a, const JobStart& b) { return a.begin_ns < b.begin_ns; });
  return starts;
}

}  // namespace sphase
