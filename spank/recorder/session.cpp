#include "spank/recorder/session.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "common/clock.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::size_t kMaxValuesPerBatch = 10'000;

void sleep_ns(std::int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

}  // namespace

Session::Session(const sphase_link_start& start, CgroupTree tree, RingReader ring, int outside_pid,
                 std::unique_ptr<PapiSource> papi)
    : period_ns_(static_cast<std::int64_t>(start.period_ns)),
      begun_ns_(monotonic_ns()),
      epoch_offset_ns_(epoch_ns() - monotonic_ns()),
      outside_pid_(outside_pid),
      ring_(std::move(ring)),
      sampler_(std::move(tree), static_cast<int>(start.stepd_pid)),
      papi_(std::move(papi)),
      phases_([this](std::string_view code, std::string text) {
        batch_.notices.push_back({epoch_ns(), std::string(code), std::move(text)});
      }) {}

void Session::notice(std::string_view code, std::string text) {
  const std::lock_guard lock(mutex_);
  batch_.notices.push_back({epoch_ns(), std::string(code), std::move(text)});
}

void Session::set_restart_count(std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  state_.restart_count = count;
}

void Session::attach(const sphase_link_task& task) {
  const std::lock_guard lock(mutex_);
  sampler_.attach(task.task, static_cast<int>(task.pid), outside_pid_);
  count_task(task);
  TaskRow row;
  row.task = task.task;
  row.global_task = task.global_task;
  row.pid = static_cast<int>(task.pid);
  row.start_ns = epoch_ns();
  tasks_[task.task] = row;
  batch_.tasks.push_back(row);
  if (!started_) {
    store_sample("start");
    started_ = true;
    next_tick_ns_ = monotonic_ns() + period_ns_;
  }
  ring_.wake();  // the edge thread sleeps without an end until there is a task
}

void Session::count_task(const sphase_link_task& task) {
  if (papi_->names().empty()) return;
  std::string why = "attaching those before took all the time that a launch may wait for it";
  if (papi_launch_ns_ < kMostPapiLaunchNs) {
    const std::int64_t begun_ns = monotonic_ns();
    const Status attached = papi_->attach(task.task, static_cast<int>(task.pid));
    papi_launch_ns_ += monotonic_ns() - begun_ns;
    if (attached) return;
    why = attached.error();
  }
  if (std::exchange(uncounted_noted_, true)) return;
  batch_.notices.push_back(
      {epoch_ns(), std::string(notice::kSource),
       "no counters for task " + std::to_string(task.task) + " and perhaps further ones: " + why});
}

/// What a task counted in all. It must have been reaped, or the step be over.
std::vector<PapiCount> Session::last_counts(std::uint32_t task) {
  papi_->detach(task);
  return papi_->read(task);
}

void Session::task_exit(const sphase_link_task& task) {
  const std::lock_guard lock(mutex_);
  drain_for_edges();
  const std::int64_t now = monotonic_ns();
  const auto known = tasks_.find(task.task);
  if (known == tasks_.end()) return;
  look_at_peak(now);
  phases_.close_task(task.task, edge_now(task.task, now, now));
  TaskRow& row = known->second;
  row.end_ns = epoch_ns();
  const bool last = std::all_of(tasks_.begin(), tasks_.end(),
                                [](const auto& one) { return one.second.end_ns.has_value(); });
  // slurmstepd has waited for the task: its cgroup still stands, its memory is given back.
  store_sample(last ? "end" : "task end");
  end_sampled_ = last;
  row.exit_status = task.exit_status;
  if (const auto cpu = sampler_.task_cpu(task.task)) row.cpu_time_ns = cpu->time_ns;
  row.counts = last_counts(task.task);
  batch_.tasks.push_back(row);
}

void Session::finish(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  drain_for_edges();
  const std::int64_t now = monotonic_ns();
  phases_.close_all([&](std::uint32_t task) { return edge_now(task, now, now); });
  if (started_ && !end_sampled_) store_sample("end");
  for (auto& [task, row] : tasks_) {  // slurmstepd did not say that they have ended
    if (row.end_ns) continue;
    row.counts = last_counts(task);
    if (!row.counts.empty()) batch_.tasks.push_back(row);
  }
  state_.end_ns = epoch_ns();
  state_.end_reason = reason;
}

std::uint32_t Session::add_client(int pid) {
  const std::lock_guard lock(mutex_);
  const auto task = sampler_.task_of_pid(pid);
  if (!task) return 0;
  sampler_.list_processes_anew();  // its I/O counts from its first marker on
  const std::uint32_t number = clients_.add(pid, *task);
  if (number == 0 && !clients_refused_) {
    clients_refused_ = true;
    batch_.notices.push_back({epoch_ns(), std::string(notice::kLimit),
                              "more than " + std::to_string(Clients::kMost) +
                                  " processes mark at once: markers of further ones are lost"});
  }
  return number;
}

bool Session::has_clients() {
  const std::lock_guard lock(mutex_);
  return !clients_.all().empty();
}

void Session::look_for_ended_clients() {
  const std::lock_guard lock(mutex_);
  if (clients_.all().empty()) return;
  const std::int64_t now = monotonic_ns();
  drain_for_edges();
  for (auto client = clients_.all().begin(); client != clients_.all().end();) {
    pollfd ended{client->second.pidfd.get(), POLLIN, 0};
    if (!client->second.pidfd || poll(&ended, 1, 0) <= 0) {
      ++client;
      continue;
    }
    phases_.close_client(client->first, edge_now(client->second.task, now, now));
    client = clients_.all().erase(client);
  }
}

std::pair<Batch, RunState> Session::take() {
  const std::lock_guard lock(mutex_);
  batch_.phases = phases_.take_rows(monotonic_ns(), finished_);
  for (PhaseRow& row : batch_.phases) {
    row.begin_ns = to_epoch(row.begin_ns);
    if (row.end_ns) row.end_ns = to_epoch(*row.end_ns);
  }
  state_.last_ns = epoch_ns();
  state_.cpu = sampler_.cpu_tier();
  state_.memory = sampler_.memory_tier();
  state_.io = sampler_.io_tier();
  state_.counters = papi_->tier();
  state_.events = papi_->names();
  state_.counters_refused = papi_->bad_values();
  count_dropped();
  state_.edge_lag_p50_ns = lag_.quantile_ns(0.5);
  state_.edge_lag_p99_ns = lag_.quantile_ns(0.99);
  RunState state = state_;
  state.markers_invalid += static_cast<std::int64_t>(ring_.torn());
  return {std::exchange(batch_, {}), state};
}

/// The ring's own count, as far as it can be believed: the user's processes can write anything
/// there.
void Session::count_dropped() {
  const std::uint64_t dropped = ring_.dropped();
  if (dropped <= kMostDropped) {
    state_.markers_dropped = static_cast<std::int64_t>(dropped);
  } else if (!dropped_refused_) {
    dropped_refused_ = true;
    batch_.notices.push_back({epoch_ns(), std::string(notice::kLimit),
                              "a process wrote nonsense into the step's marker ring: how many "
                              "markers were dropped is not known"});
  }
}

void Session::run_edges() {
  std::int64_t wake_at_ns = INT64_MAX;
  while (!stopping_.load()) {
    const std::int64_t idle_ns = 3'600'000'000'000;
    ring_.wait(std::clamp<std::int64_t>(wake_at_ns - monotonic_ns(), 1, idle_ns));
    std::int64_t pause_ns = 0;
    {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      const std::int64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
      const std::uint32_t records = drain();
      tick(monotonic_ns());
      const std::int64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
      pause_ns = pacing_.pause_ns(monotonic_ns(), took_ns, records);
      hot_ = pause_ns > 0;
      wake_at_ns = wake_at_ns_;
      // A claimed slot whose writer was killed holds up what lies behind it: nobody rings for that.
      if (ring_.waiting() > 0) {
        wake_at_ns = std::min(wake_at_ns, monotonic_ns() + RingReader::kTornNs);
      }
    }
    if (pause_ns > 0) sleep_ns(pause_ns);
  }
}

void Session::stop() {
  stopping_.store(true);
  ring_.wake();
}

/// What the main thread reads while the edge thread may be about to sleep on an older position.
void Session::drain_for_edges() {
  if (drain() > 0) ring_.wake();
}

/// Handles every marker that waits. The caller holds the lock.
std::uint32_t Session::drain() {
  std::uint32_t records = 0;
  std::int64_t read_ns = monotonic_ns();
  const std::uint32_t most = ring_.capacity();
  while (records < most) {
    const auto record = ring_.next(read_ns);
    if (!record) break;
    if (!hot_ || records % 64 == 0) read_ns = monotonic_ns();
    ++records;
    handle(*record, read_ns);
  }
  state_.markers += records;
  ring_.publish_tail();
  return records;
}

void Session::handle(const sphase_record& record, std::int64_t read_ns) {
  Client* const client = clients_.find(record.client);
  if (client == nullptr || record.type < SPHASE_BEGIN || record.type > SPHASE_ATTR) {
    ++state_.markers_invalid;
    return;
  }
  const bool shell = (record.flags & SPHASE_FLAG_SHELL) != 0;
  if (!shell) remember_stamp(*client, record);
  const StreamId id = shell ? StreamId{true, client->task, 0, 0}
                            : StreamId{false, client->task, record.client, record.tid};
  const RecordText text = record_text(record);
  if (record.type == SPHASE_BEGIN || record.type == SPHASE_END) {
    handle_edge(record, id, *client, text.name, read_ns);
  } else if (text.name.empty() || (record.type == SPHASE_VALUE && std::isnan(record.value)) ||
             batch_.values.size() >= kMaxValuesPerBatch ||
             batch_.attributes.size() >= kMaxValuesPerBatch) {
    ++state_.markers_invalid;
  } else if (record.type == SPHASE_VALUE) {
    batch_.values.push_back({to_epoch(static_cast<std::int64_t>(record.time_ns)), client->task,
                             phases_.path_of(id), text.name, record.value});
  } else {
    batch_.attributes.push_back({client->task, phases_.path_of(id), text.name, text.value});
  }
}

void Session::handle_edge(const sphase_record& record, const StreamId& id, Client& client,
                          const std::string& name, std::int64_t read_ns) {
  // A time from the future or from before the step is a lie, or another time namespace.
  const auto marked_ns = static_cast<std::int64_t>(record.time_ns);
  const bool possible = marked_ns >= begun_ns_ && marked_ns <= read_ns;
  const std::int64_t time_ns = possible ? marked_ns : read_ns;
  Edge edge = edge_now(client.task, time_ns, read_ns);
  edge.client = record.client;
  if (!id.shell) stamp_edge(client, time_ns, edge);
  if (!hot_) lag_.add(read_ns - time_ns);
  sample_edge(read_ns);  // after the task's own counters, which must be as near as can be
  if (!hot_) look_at_peak(read_ns);

  const int depth = record.depth == SPHASE_DEPTH_UNKNOWN ? -1 : record.depth;
  const std::uint64_t dropped = ring_.dropped();
  const bool lost = dropped != client.dropped_seen;
  client.dropped_seen = dropped;
  if (record.type == SPHASE_BEGIN) {
    phases_.begin(id, name, depth, lost, edge);
  } else {
    phases_.end(id, name, depth, lost, edge);
  }
}

/// The counters of a task as they are read now, for a marker that fired at `time_ns`.
Edge Session::edge_now(std::uint32_t task, std::int64_t time_ns, std::int64_t read_ns) {
  Edge edge;
  edge.time_ns = time_ns;
  edge.lag_ns = std::max<std::int64_t>(0, read_ns - time_ns);
  const TaskCounters now = task_counters(task, read_ns);
  edge.counts = now.counts;
  if (now.cpu) {
    edge.task_cpu_ns = now.cpu->time_ns;
    edge.task_resolution_ns = now.cpu->resolution_ns;
    edge.task_source = now.cpu->source;
  }
  return edge;
}

/// Cost: 0.5 µs for the cgroup, 2 to 3.5 µs more where events are counted.
Session::TaskCounters Session::read_task(std::uint32_t task) {
  TaskCounters counters{sampler_.task_cpu(task), nullptr};
  const std::vector<PapiCount>& counts = papi_->read(task);
  if (!counts.empty()) counters.counts = std::make_shared<const std::vector<PapiCount>>(counts);
  return counters;
}

Session::TaskCounters Session::task_counters(std::uint32_t task, std::int64_t now_ns) {
  constexpr std::int64_t kReuseNs = 200'000;
  if (!hot_) return read_task(task);
  if (recent_.task != task || now_ns - recent_.time_ns > kReuseNs) {
    recent_ = {task, now_ns, read_task(task)};
  }
  return recent_.counters;
}

void Session::store_sample(const char* kind) {
  SampleRow row = sampler_.sample(kind);
  const std::int64_t now = monotonic_ns();
  row.time_ns = to_epoch(now);
  phases_.memory_seen(row.memory, now);
  last_file_bytes_ = row.memory.file.value_or(0);
  last_sample_ns_ = now;
  batch_.samples.push_back(row);
}

/// A sample for this marker and all within the next millisecond, before the tracker sees it; none
/// while markers come in bulk.
void Session::sample_edge(std::int64_t now_ns) {
  if (!started_ || hot_ || now_ns - last_sample_ns_ < kEdgeSampleGapNs) return;
  store_sample("edge");
}

/// Memory between samples, so that the peak of a short phase is not missed: the total first, and
/// its parts only when it could raise the peak of an open phase.
void Session::look_at_memory() {
  const auto current = sampler_.current_bytes();
  if (!current) return;
  if (*current - last_file_bytes_ <= phases_.lowest_open_peak()) return;
  const Memory memory = sampler_.memory();
  last_file_bytes_ = memory.file.value_or(0);
  phases_.memory_seen(memory, monotonic_ns());
}

/// At every edge and every sample, so that what is read belongs to the phases now open.
void Session::look_at_peak(std::int64_t read_ns) {
  if (const auto peak = sampler_.take_peak()) {
    phases_.peak_seen(*peak, last_file_bytes_, read_ns);
  }
}

void Session::tick(std::int64_t now_ns) {
  if (!started_) return;
  if (now_ns >= next_tick_ns_) {
    if (last_tick_ns_ != 0 && now_ns - last_tick_ns_ > 3 * period_ns_) {
      batch_.notices.push_back(
          {epoch_ns(), std::string(notice::kGap),
           "no samples for " + std::to_string((now_ns - last_tick_ns_) / 1'000'000) +
               " ms: the recorder was stopped or the node was too busy to run it"});
    }
    store_sample("tick");
    look_at_peak(now_ns);
    last_tick_ns_ = now_ns;
    next_tick_ns_ = std::max(next_tick_ns_ + period_ns_, now_ns + period_ns_ / 2);
  }
  if (!phases_.any_open()) {
    next_memory_ns_ = 0;
  } else if (now_ns >= next_memory_ns_) {
    if (next_memory_ns_ != 0) look_at_memory();
    next_memory_ns_ = now_ns + kMemoryPeriodNs;
  }
  wake_at_ns_ = next_memory_ns_ != 0 ? std::min(next_tick_ns_, next_memory_ns_) : next_tick_ns_;
}

}  // namespace sphase
