// Runs with their samples and phases: load_runs of timeline_load.h.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <tuple>

#include "collector/timeline/node_names.h"
#include "collector/timeline/timeline_load.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A recorder is not waited for longer than this after its job's end was seen.
constexpr std::int64_t kLostGraceNs = 5 * kSecond;
/// No sign of life for this long when the file was merged: the recorder is lost.
constexpr std::int64_t kSilenceNs = 300 * kSecond;

/// A counter that cannot be is not known: the markers that it came from are the user's.
Maybe plausible(const Maybe& value) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

Result<std::map<std::string, std::int64_t>> merge_times(Database& db) {
  auto row = db.prepare(
      "SELECT node, max(merged_ns) FROM source WHERE node IS NOT NULL AND problem IS NULL"
      " GROUP BY node");
  if (!row) return Error{row.error()};
  std::map<std::string, std::int64_t> times;
  while (row->step()) times.emplace(row->text(0), row->integer(1));
  if (!row->status()) return Error{row->status().error()};
  return times;
}

/// True if the plugin saw the recorder of this run go.
Result<bool> said_lost(Database& db, const Run& run) {
  auto query = db.prepare(
      "SELECT 1 FROM run JOIN notice USING (cluster, job_id, restart_count, step, node)"
      " WHERE run.run_id = ? AND notice.code = ? AND notice.time_ns >= run.start_ns LIMIT 1");
  if (!query) return Error{query.error()};
  const bool found = query->bind(1, run.run_id).bind(2, notice::kRecorderLost).step();
  if (!found && !query->status()) return Error{query->status().error()};
  return found;
}

/// Decides which runs without an end are lost, and which still go on.
void settle(std::vector<Run>& runs, const std::map<std::string, std::int64_t>& merged,
            Maybe job_end_ns) {
  std::map<std::string, std::int64_t> step_end;  // on any node
  for (const auto& run : runs) {
    if (run.ended) step_end[run.step] = std::max(step_end[run.step], run.end_ns);
  }
  for (auto& run : runs) {
    if (run.ended) continue;
    Maybe over = job_end_ns;
    if (const auto step = step_end.find(run.step); step != step_end.end()) {
      over = std::min(over.value_or(step->second), step->second);
    }
    const auto seen = merged.find(run.node);
    const std::int64_t merged_ns =
        seen == merged.end() ? std::numeric_limits<std::int64_t>::max() : seen->second;
    run.lost = run.lost || (over && merged_ns - kLostGraceNs > *over) ||
               merged_ns - kSilenceNs > run.end_ns;
  }
}

/// Statements kept over many runs.
class RunReader {
 public:
  static Result<RunReader> prepare(Database& db) {
    auto run = db.prepare(
        "SELECT step, node, start_ns, end_ns, last_ns, node_index, step_nodes, step_tasks,"
        " node_tasks, job_cpus, step_cpus, job_memory_bytes, step_memory_bytes, tick_ns, period_ns,"
        " cpu_source, cpu_reason, memory_source, memory_reason, io_source, io_reason, end_reason,"
        " profile, sphase_version, slurm_version, markers, markers_dropped, markers_invalid,"
        " samples_dropped, edge_lag_p50_ns, edge_lag_p99_ns, recorder_cpu_ns, recorder_rss_bytes,"
        " counter_source, counter_reason"
        " FROM run WHERE run_id = ?");
    auto sample = db.prepare(
        "SELECT time_ns, cpu_time_ns, memory_anon_bytes, memory_shmem_bytes, memory_kernel_bytes,"
        " memory_current_bytes, memory_file_bytes, io_read_bytes, io_write_bytes,"
        " io_read_call_bytes, io_write_call_bytes, memory_peak_bytes FROM sample WHERE run_id = ? "
        "ORDER BY time_ns");
    auto phase = db.prepare(
        "SELECT scope, task, path, number, depth, count, begin_ns, end_ns, wall_ns, cpu_time_ns,"
        " cpu_resolution_ns, memory_peak_bytes, edge_lag_ns, flags FROM phase WHERE run_id = ?");
    auto attribute = db.prepare(
        "SELECT path, key, value FROM attribute WHERE run_id = ? ORDER BY task, path, key");
    auto task = db.prepare("SELECT exit_status FROM task WHERE run_id = ?");
    auto counter = db.prepare(
        "SELECT scope, task, path, number, event, value, time_enabled_ns, time_running_ns"
        " FROM counter WHERE run_id = ?");
    for (const auto* statement : {&run, &sample, &phase, &attribute, &task, &counter}) {
      if (!*statement) return Error{statement->error()};
    }
    return RunReader({std::move(*run), std::move(*sample), std::move(*phase), std::move(*attribute),
                      std::move(*task), std::move(*counter)});
  }

  Result<Run> read(std::int64_t run_id);
  Status read_inside(Run& run);

 private:
  struct Statements {
    Statement run, sample, phase, attribute, task, counter;
  };
  explicit RunReader(Statements statements)
      : run_(std::move(statements.run)),
        sample_(std::move(statements.sample)),
        phase_(std::move(statements.phase)),
        attribute_(std::move(statements.attribute)),
        task_(std::move(statements.task)),
        counter_(std::move(statements.counter)) {}

  void read_counts(Run& run);
  Status read_samples(Run& run);
  Status read_phases(Run& run);
  Status read_attributes(Run& run);
  Status read_tasks(Run& run);
  Status read_counters(Run& run);

  Statement run_, sample_, phase_, attribute_, task_, counter_;
};

Result<Run> RunReader::read(std::int64_t run_id) {
  run_.bind(1, run_id);
  if (!run_.step()) return Error{"run " + std::to_string(run_id) + " is gone"};
  Run run;
  run.run_id = run_id;
  run.step = run_.text(0);
  run.node = run_.text(1);
  run.begin_ns = run_.integer(2);
  const Maybe end = run_.maybe_integer(3), last = run_.maybe_integer(4);
  run.ended = end.has_value();
  run.end_ns = std::max(run.begin_ns, end.value_or(last.value_or(run.begin_ns)));
  read_counts(run);
  if (auto done = run_.run(); !done) return Error{done.error()};
  return run;
}

void RunReader::read_counts(Run& run) {
  int at = 5;
  for (Maybe* number : {&run.node_index, &run.step_nodes, &run.step_tasks, &run.node_tasks,
                        &run.job_cpus, &run.step_cpus, &run.job_memory_bytes,
                        &run.step_memory_bytes, &run.tick_ns, &run.period_ns}) {
    *number = run_.maybe_integer(at++);
  }
  // Slurm says 0 where memory is not managed.
  for (Maybe* bytes : {&run.job_memory_bytes, &run.step_memory_bytes}) {
    if (*bytes && **bytes <= 0) bytes->reset();
  }
  for (MaybeText* text :
       {&run.cpu_source, &run.cpu_reason, &run.memory_source, &run.memory_reason, &run.io_source,
        &run.io_reason, &run.end_reason, &run.profile, &run.sphase_version, &run.slurm_version}) {
    *text = run_.maybe_text(at++);
  }
  for (std::int64_t* count :
       {&run.markers, &run.markers_dropped, &run.markers_invalid, &run.samples_dropped}) {
    *count = run_.integer(at++);
  }
  for (Maybe* number : {&run.edge_lag_p50_ns, &run.edge_lag_p99_ns, &run.recorder_cpu_ns,
                        &run.recorder_rss_bytes}) {
    *number = run_.maybe_integer(at++);
  }
  run.counter_source = run_.maybe_text(at++);
  run.counter_reason = run_.maybe_text(at++);
}

Status RunReader::read_samples(Run& run) {
  sample_.bind(1, run.run_id);
  std::vector<Sample> samples;
  while (sample_.step()) {
    Sample sample;
    sample.time_ns = sample_.integer(0);
    sample.cpu_time_ns = sample_.maybe_integer(1);
    sample.memory_bytes =
        memory_used(sample_.maybe_integer(2), sample_.maybe_integer(3), sample_.maybe_integer(4),
                    sample_.maybe_integer(5), sample_.maybe_integer(6));
    sample.io_read_bytes = sample_.maybe_integer(7);
    sample.io_write_bytes = sample_.maybe_integer(8);
    sample.io_read_call_bytes = sample_.maybe_integer(9);
    sample.io_write_call_bytes = sample_.maybe_integer(10);
    run.memory_high_bytes = std::max(run.memory_high_bytes, sample_.maybe_integer(11));
    samples.push_back(sample);
  }
  run.samples = SampleSeries(std::move(samples));
  return sample_.status();
}

Status RunReader::read_phases(Run& run) {
  phase_.bind(1, run.run_id);
  while (phase_.step()) {
    PhaseMark mark;
    mark.shell = phase_.text(0) == kScopeShell;
    mark.task = static_cast<int>(phase_.integer(1));
    mark.path = phase_.text(2);
    mark.number = phase_.integer(3);
    mark.depth = phase_.integer(4);
    mark.count = phase_.integer(5);
    // Times come from the job itself: they cannot lie outside of its run.
    const std::int64_t first_ns = run.begin_ns - kSecond, last_ns = run.end_ns + kSecond;
    mark.begin_ns = std::clamp(phase_.integer(6), first_ns, last_ns);
    mark.end_ns = std::clamp(phase_.maybe_integer(7).value_or(run.end_ns), mark.begin_ns, last_ns);
    mark.wall_ns = plausible(phase_.maybe_integer(8));
    mark.cpu_time_ns = plausible(phase_.maybe_integer(9));
    mark.cpu_resolution_ns = phase_.maybe_integer(10);
    mark.memory_peak_bytes = plausible(phase_.maybe_integer(11));
    mark.edge_lag_ns = phase_.maybe_integer(12);
    mark.flags = static_cast<std::uint32_t>(phase_.integer(13)) & 0xFFFF;
    if (phase_.is_null(7)) mark.flags |= run.ended ? kUnclosed : run.lost ? kRecorderLost : kOpen;
    run.phases.push_back(std::move(mark));
  }
  std::stable_sort(run.phases.begin(), run.phases.end(),
                   [](const PhaseMark& a, const PhaseMark& b) { return a.begin_ns < b.begin_ns; });
  return phase_.status();
}

Status RunReader::read_attributes(Run& run) {
  attribute_.bind(1, run.run_id);
  while (attribute_.step()) {
    const std::string path = attribute_.text(0);
    run.attributes.emplace_back(path.empty() ? attribute_.text(1) : path + '/' + attribute_.text(1),
                                attribute_.text(2));
  }
  return attribute_.status();
}

/// The signal that ended a process, also as a shell around it reports it (128 + signal); else 0.
int signal_of(std::int64_t wait_status) {
  const int status = static_cast<int>(wait_status);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128 : 0;
}

Status RunReader::read_tasks(Run& run) {
  task_.bind(1, run.run_id);
  while (task_.step()) {
    const int signal = signal_of(task_.integer(0));  // NULL (it still runs) reads as 0
    run.killed = run.killed || signal == SIGKILL;
    run.crashed = run.crashed || signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS ||
                  signal == SIGFPE || signal == SIGILL;
  }
  return task_.status();
}

/// Of phases, and of whole tasks (path '' and number 0). Needs the phases.
Status RunReader::read_counters(Run& run) {
  using Key = std::tuple<bool, int, std::string, std::int64_t>;
  std::map<Key, std::vector<Counted>> counted;
  counter_.bind(1, run.run_id);
  while (counter_.step()) {
    counted[{counter_.text(0) == kScopeShell, static_cast<int>(counter_.integer(1)),
             counter_.text(2), counter_.integer(3)}]
        .push_back({counter_.text(4), plausible(counter_.maybe_integer(5)),
                    plausible(counter_.maybe_integer(6)), plausible(counter_.maybe_integer(7))});
  }
  if (counted.empty()) return counter_.status();
  for (PhaseMark& mark : run.phases) {
    const auto found = counted.find({mark.shell, mark.task, mark.path, mark.number});
    if (found != counted.end()) mark.counts = std::move(found->second);
  }
  for (auto& [key, counts] : counted) {
    if (std::get<2>(key).empty()) run.task_counts.push_back(std::move(counts));
  }
  return counter_.status();
}

Status RunReader::read_inside(Run& run) {
  if (auto done = read_samples(run); !done) return done;
  if (auto done = read_phases(run); !done) return done;
  if (auto done = read_counters(run); !done) return done;
  if (auto done = read_tasks(run); !done) return done;
  return read_attributes(run);
}

}  // namespace

Result<std::vector<Run>> load_runs(Database& db, const std::vector<std::int64_t>& run_ids,
                                   Maybe job_end_ns) {
  auto reader = RunReader::prepare(db);
  if (!reader) return Error{reader.error()};
  auto merged = merge_times(db);
  if (!merged) return Error{merged.error()};
  std::vector<Run> runs;
  for (const auto id : run_ids) {
    auto run = reader->read(id);
    if (!run) return Error{run.error()};
    if (!run->ended) {
      auto lost = said_lost(db, *run);
      if (!lost) return Error{lost.error()};
      run->lost = *lost;
    }
    runs.push_back(std::move(*run));
  }
  settle(runs, *merged, job_end_ns);
  for (auto& run : runs) {
    if (auto done = reader->read_inside(run); !done) return Error{done.error()};
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.step != b.step ? node_less(a.step, b.step) : node_less(a.node, b.node);
  });
  return runs;
}

}  // namespace sphase
