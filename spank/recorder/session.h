// One step on one node while it is recorded: tasks, markers, samples, and the rows they become.
//
// Two threads come here. The edge thread (real-time priority where allowed) sleeps on the ring's
// bell and reads counters when a marker fires; the main thread brings tasks and clients, and takes
// the rows away to the store. One mutex; nothing in it blocks but reads of /proc and cgroup files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "spank/recorder/papi/papi_source.h"
#include "spank/recorder/phases/clients.h"
#include "spank/recorder/phases/edge_lag.h"
#include "spank/recorder/phases/pacing.h"
#include "spank/recorder/phases/phase_tracker.h"
#include "spank/recorder/phases/ring_reader.h"
#include "spank/recorder/sources/sampler.h"
#include "spank/recorder/store/run_rows.h"

namespace sphase {

class Session {
 public:
  /// `outside_pid`: a process that is not the job's; see open_task_sources().
  Session(const sphase_link_start& start, CgroupTree tree, RingReader ring, int outside_pid,
          std::unique_ptr<PapiSource> papi);

  // Main thread.
  void attach(const sphase_link_task& task);
  void task_exit(const sphase_link_task& task);
  /// The step is over: last markers, last sample, open phases closed. Later calls do nothing.
  void finish(const std::string& reason);
  /// A process connected. 0: refused (too many, or of no task of this step).
  std::uint32_t add_client(int pid);
  /// Closes what processes left open that have ended since. Call now and then.
  void look_for_ended_clients();
  /// Some process has connected and not ended yet.
  bool has_clients();
  void set_restart_count(std::uint32_t count);
  void notice(std::string_view code, std::string text);
  /// Rows since the last call, and the run's state now.
  std::pair<Batch, RunState> take();
  int ring_fd() const { return ring_.memfd(); }
  std::uint32_t ring_capacity() const { return ring_.capacity(); }

  // Edge thread: returns when stop() was called.
  void run_edges();
  void stop();

  /// While a phase is open its memory is looked at this often (0.5 µs each time).
  static constexpr std::int64_t kMemoryPeriodNs = 100'000'000;
  static constexpr std::int64_t kEdgeSampleGapNs = 1'000'000;
  /// A launch waits for PAPI no longer than this in all; tasks beyond have no counters. Attached
  /// later, they would be counted from somewhere in the middle, without the threads they have.
  static constexpr std::int64_t kMostPapiLaunchNs = 25'000'000;
  static constexpr std::uint64_t kMostDropped = 1'000'000'000'000'000;  // 100 CPUs for a day

 private:
  std::uint32_t drain();
  void drain_for_edges();
  void count_dropped();
  void handle(const sphase_record& record, std::int64_t read_ns);
  void handle_edge(const sphase_record& record, const StreamId& id, Client& client,
                   const std::string& name, std::int64_t read_ns);
  Edge edge_now(std::uint32_t task, std::int64_t time_ns, std::int64_t read_ns);
  void store_sample(const char* kind);
  void sample_edge(std::int64_t now_ns);
  struct TaskCounters {
    std::optional<Sampler::TaskCpu> cpu;
    PapiCounts counts;
  };
  TaskCounters read_task(std::uint32_t task);
  TaskCounters task_counters(std::uint32_t task, std::int64_t now_ns);
  void count_task(const sphase_link_task& task);
  std::vector<PapiCount> last_counts(std::uint32_t task);
  void look_at_memory();
  void look_at_peak(std::int64_t read_ns);
  void tick(std::int64_t now_ns);
  std::int64_t to_epoch(std::int64_t monotonic) const { return monotonic + epoch_offset_ns_; }

  const std::int64_t period_ns_;
  const std::int64_t begun_ns_;         // monotonic: no marker can be older
  const std::int64_t epoch_offset_ns_;  // one per run: a stepped wall clock bends no duration
  const int outside_pid_;
  std::mutex mutex_;
  std::atomic<bool> stopping_{false};

  RingReader ring_;
  Sampler sampler_;
  const std::unique_ptr<PapiSource> papi_;
  std::int64_t papi_launch_ns_ = 0;  // spent on attaching so far
  bool uncounted_noted_ = false;
  PhaseTracker phases_;
  Clients clients_;
  Pacing pacing_;
  EdgeLag lag_;
  Batch batch_;
  RunState state_;
  std::map<std::uint32_t, TaskRow> tasks_;
  bool started_ = false;  // the first task is attached
  bool finished_ = false;
  bool end_sampled_ = false;
  bool hot_ = false;  // this drain is one of many: counters are not read at each edge
  std::int64_t next_tick_ns_ = 0;
  std::int64_t last_tick_ns_ = 0;
  std::int64_t next_memory_ns_ = 0;
  std::int64_t last_sample_ns_ = 0;
  std::int64_t last_file_bytes_ = 0;
  std::int64_t wake_at_ns_ = INT64_MAX;  // next tick or look at memory
  struct {
    std::uint32_t task = 0;
    std::int64_t time_ns = 0;
    TaskCounters counters;
  } recent_;  // reused for a fraction of a millisecond while markers come in bulk
  bool clients_refused_ = false;
  bool dropped_refused_ = false;
};

}  // namespace sphase
