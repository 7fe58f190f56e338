// Runs with their samples and phases: load_runs of timeline_load.h.
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>

#include "collector/timeline/node_clocks.h"
#include "collector/timeline/node_names.h"
#include "collector/timeline/run_rows.h"
#include "collector/timeline/stored_rows.h"
#include "collector/timeline/timeline_load.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
/// A recorder is not waited for longer than this after its job's end was seen.
constexpr std::int64_t kLostGraceNs = 5 * kSecond;
/// No sign of life for this long when the file was merged: the recorder is lost.
constexpr std::int64_t kSilenceNs = 300 * kSecond;

Result<std::map<std::string, std::int64_t>> merge_times(Database& db) {
  auto row = db.prepare(
      "SELECT node, max(at) FROM (SELECT node, merged_ns AS at FROM source WHERE node IS NOT NULL"
      " AND problem IS NULL UNION ALL SELECT node, seen_ns FROM shipper) GROUP BY node");
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

void set_clock(Run& run, const NodeClock& clock) {
  run.clock_offset_ns = clock.offset_ns;
  run.clock_band_ns = clock.band_ns;
  run.clock_shift_ns = shift_of(clock);
  run.begin_ns -= run.clock_shift_ns;
  run.end_ns -= run.clock_shift_ns;
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
    auto sample = StoredRows::prepare(db, "sample");
    auto phase = StoredRows::prepare(db, "phase");
    auto counter = StoredRows::prepare(db, "counter");
    auto attribute = db.prepare(
        "SELECT path, key, value FROM attribute WHERE run_id = ? ORDER BY task, path, key");
    auto task = db.prepare("SELECT exit_status FROM task WHERE run_id = ?");
    for (const auto* statement : {&run, &attribute, &task}) {
      if (!*statement) return Error{statement->error()};
    }
    for (const auto* rows : {&sample, &phase, &counter}) {
      if (!*rows) return Error{rows->error()};
    }
    return RunReader({std::move(*run), std::move(*sample), std::move(*phase), std::move(*attribute),
                      std::move(*task), std::move(*counter)});
  }

  Result<Run> read(std::int64_t run_id);
  Status read_inside(Run& run);

 private:
  struct Statements {
    Statement run;
    StoredRows sample, phase;
    Statement attribute, task;
    StoredRows counter;
  };
  explicit RunReader(Statements statements)
      : run_(std::move(statements.run)),
        sample_(std::move(statements.sample)),
        phase_(std::move(statements.phase)),
        attribute_(std::move(statements.attribute)),
        task_(std::move(statements.task)),
        counter_(std::move(statements.counter)) {}

  void read_counts(Run& run);
  Status read_rows(Run& run);
  static Result<std::vector<Segment>> parts(StoredRows& table, Run& run);
  Status read_attributes(Run& run);
  Status read_tasks(Run& run);

  Statement run_;
  StoredRows sample_, phase_;
  Statement attribute_, task_;
  StoredRows counter_;
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

/// Rows of one table of the run; those that cannot be read are counted.
Result<std::vector<Segment>> RunReader::parts(StoredRows& table, Run& run) {
  return table.of_run(run.run_id, run.segments_unreadable);
}

Status RunReader::read_rows(Run& run) {
  auto samples = parts(sample_, run);
  if (!samples) return Error{samples.error()};
  put_samples(*samples, run);
  auto phases = parts(phase_, run);
  if (!phases) return Error{phases.error()};
  put_phases(*phases, run);
  auto counters = parts(counter_, run);
  if (!counters) return Error{counters.error()};
  put_counters(*counters, run);
  return Done{};
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

Status RunReader::read_inside(Run& run) {
  if (auto done = read_rows(run); !done) return done;
  if (auto done = read_tasks(run); !done) return done;
  return read_attributes(run);
}

}  // namespace

Result<std::vector<Run>> load_runs(Database& db, const std::vector<std::int64_t>& run_ids,
                                   Maybe job_end_ns) {
  auto reader = RunReader::prepare(db);
  if (!reader) return Error{reader.error()};
  auto clocks = NodeClocks::prepare(db);
  if (!clocks) return Error{clocks.error()};
  auto merged = merge_times(db);
  if (!merged) return Error{merged.error()};
  std::vector<Run> runs;
  for (const auto id : run_ids) {
    auto run = reader->read(id);
    if (!run) return Error{run.error()};
    auto clock = clocks->at(run->node, run->begin_ns);
    if (!clock) return Error{clock.error()};
    if (*clock) set_clock(*run, **clock);
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
