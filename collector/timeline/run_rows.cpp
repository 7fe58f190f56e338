#include "collector/timeline/run_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "collector/timeline/stored_rows.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A counter that cannot be is not known: the markers that it came from are the user's.
Maybe plausible(const Maybe& value) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

void add_samples(const Segment& part, std::vector<Sample>& samples, Maybe& memory_high_bytes) {
  const auto column = [&](std::string_view name) { return StoredColumn(part, name); };
  const auto time = column("time_ns"), cpu = column("cpu_time_ns");
  const auto anon = column("memory_anon_bytes"), shmem = column("memory_shmem_bytes"),
             kernel = column("memory_kernel_bytes"), current = column("memory_current_bytes"),
             file = column("memory_file_bytes"), peak = column("memory_peak_bytes");
  const auto read = column("io_read_bytes"), write = column("io_write_bytes"),
             read_call = column("io_read_call_bytes"), write_call = column("io_write_call_bytes");
  samples.reserve(samples.size() + part.rows());
  for (std::size_t row = 0; row < part.rows(); ++row) {
    samples.push_back(
        {time.integer(row), cpu.maybe_integer(row),
         memory_used(anon.maybe_integer(row), shmem.maybe_integer(row), kernel.maybe_integer(row),
                     current.maybe_integer(row), file.maybe_integer(row)),
         read.maybe_integer(row), write.maybe_integer(row), read_call.maybe_integer(row),
         write_call.maybe_integer(row)});
    memory_high_bytes = std::max(memory_high_bytes, peak.maybe_integer(row));
  }
}

/// The columns of one part of table `phase`.
struct PhaseColumns {
  explicit PhaseColumns(const Segment& part)
      : scope(part, "scope"),
        path(part, "path"),
        task(part, "task"),
        number(part, "number"),
        depth(part, "depth"),
        count(part, "count"),
        begin(part, "begin_ns"),
        end(part, "end_ns"),
        wall(part, "wall_ns"),
        cpu(part, "cpu_time_ns"),
        resolution(part, "cpu_resolution_ns"),
        peak(part, "memory_peak_bytes"),
        lag(part, "edge_lag_ns"),
        flags(part, "flags") {}

  StoredColumn scope, path, task, number, depth, count, begin, end, wall, cpu, resolution, peak,
      lag, flags;
};

/// Times come from the job itself: they cannot lie outside of its run.
PhaseMark mark_of(const PhaseColumns& part, std::size_t row, const Run& run) {
  const std::int64_t first_ns = run.begin_ns - kSecond, last_ns = run.end_ns + kSecond;
  Maybe end_ns = part.end.maybe_integer(row);
  if (end_ns) *end_ns -= run.clock_shift_ns;
  PhaseMark mark;
  mark.shell = part.scope.text(row) == kScopeShell;
  mark.task = static_cast<int>(part.task.integer(row));
  mark.path = part.path.text(row);
  mark.number = part.number.integer(row);
  mark.depth = part.depth.integer(row);
  mark.count = part.count.integer(row);
  mark.begin_ns = std::clamp(part.begin.integer(row) - run.clock_shift_ns, first_ns, last_ns);
  mark.end_ns = std::clamp(end_ns.value_or(run.end_ns), mark.begin_ns, last_ns);
  mark.wall_ns = plausible(part.wall.maybe_integer(row));
  mark.cpu_time_ns = plausible(part.cpu.maybe_integer(row));
  mark.cpu_resolution_ns = part.resolution.maybe_integer(row);
  mark.memory_peak_bytes = plausible(part.peak.maybe_integer(row));
  mark.edge_lag_ns = part.lag.maybe_integer(row);
  mark.flags = static_cast<std::uint32_t>(part.flags.integer(row)) & 0xFFFF;
  if (!end_ns) mark.flags |= run.ended ? kUnclosed : run.lost ? kRecorderLost : kOpen;
  return mark;
}

/// Which phase of a run something is about; path '' and number 0: a whole task.
using PhaseKey = std::tuple<bool, int, std::string, std::int64_t>;

/// The events of each phase, [phase][event].
using CountsOf = std::map<PhaseKey, std::vector<Counted>>;

CountsOf counts_of(const std::vector<Segment>& parts) {
  CountsOf counts;
  for (const auto& [at, row] : rows_that_count(parts, "counter")) {
    const auto column = [&part = parts[at]](const char* name) { return StoredColumn(part, name); };
    const bool shell = column("scope").text(row) == kScopeShell;
    counts[{shell, static_cast<int>(column("task").integer(row)), column("path").text(row),
            column("number").integer(row)}]
        .push_back({column("event").text(row), plausible(column("value").maybe_integer(row)),
                    plausible(column("time_enabled_ns").maybe_integer(row)),
                    plausible(column("time_running_ns").maybe_integer(row))});
  }
  return counts;
}

}  // namespace

void put_samples(const std::vector<Segment>& parts, Run& run) {
  std::vector<Sample> samples;
  for (const Segment& part : parts) add_samples(part, samples, run.memory_high_bytes);
  for (Sample& sample : samples) sample.time_ns -= run.clock_shift_ns;
  const auto earlier = [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; };
  if (!std::is_sorted(samples.begin(), samples.end(), earlier)) {
    std::stable_sort(samples.begin(), samples.end(), earlier);
  }
  // A row that came raw after it had come sealed is the same row.
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  run.samples = SampleSeries(std::move(samples));
}

void put_phases(const std::vector<Segment>& parts, Run& run) {
  std::vector<PhaseColumns> columns;
  for (const Segment& part : parts) columns.emplace_back(part);
  for (const auto& [part, row] : rows_that_count(parts, "phase")) {
    run.phases.push_back(mark_of(columns[part], row, run));
  }
  std::stable_sort(run.phases.begin(), run.phases.end(),
                   [](const PhaseMark& a, const PhaseMark& b) { return a.begin_ns < b.begin_ns; });
}

void put_counters(const std::vector<Segment>& parts, Run& run) {
  CountsOf counted = counts_of(parts);
  if (counted.empty()) return;
  for (PhaseMark& mark : run.phases) {
    const auto found = counted.find({mark.shell, mark.task, mark.path, mark.number});
    if (found != counted.end()) mark.counts = std::move(found->second);
  }
  for (auto& [key, counts] : counted) {
    if (std::get<2>(key).empty()) run.task_counts.push_back(std::move(counts));
  }
}

}  // namespace sphase
