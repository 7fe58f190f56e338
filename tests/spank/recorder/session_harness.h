// A whole step of this test's own processes: tasks, a ring, and what the session makes of them.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "spank/recorder/session.h"
#include "tests/common/tools.h"
#include "tests/spank/recorder/phases/ring_writer.h"

namespace sphase::testing {

/// A child that lives until it is told to end.
class Task {
 public:
  Task()
      : pid_(start_child([] {
          while (true) pause();
          return 0;
        })) {}
  ~Task() { end(); }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  int pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait_for(pid_);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

inline sphase_link_start start_of(std::uint64_t period_ms = 1000) {
  sphase_link_start start{};
  start.type = SPHASE_LINK_START;
  start.stepd_pid = static_cast<std::uint32_t>(getpid());
  start.period_ns = period_ms * 1'000'000;
  return start;
}

inline sphase_link_task message(std::uint32_t type, std::uint32_t task, int pid, int status = 0) {
  return {type, task, task, static_cast<std::uint32_t>(pid), status, 0};
}

/// A session, its edge thread, and a writer on its ring. Reads /proc, so that it works anywhere.
class Step {
 public:
  explicit Step(std::uint64_t period_ms = 1000,
                std::unique_ptr<PapiSource> papi = std::make_unique<PapiSource>("not tried here"))
      : session(start_of(period_ms), CgroupTree({}), std::move(*RingReader::create()), 0,
                std::move(papi)),
        writer(session.ring_fd(), session.ring_capacity()),
        edges_([this] { session.run_edges(); }) {}
  ~Step() {
    session.stop();
    edges_.join();
  }
  void attach(std::uint32_t task, int pid) {
    session.attach(message(SPHASE_LINK_ATTACH, task, pid));
  }
  void exit(std::uint32_t task, int pid, int status = 0) {
    session.task_exit(message(SPHASE_LINK_TASK_EXIT, task, pid, status));
  }
  bool mark(std::uint32_t client, std::uint8_t type, std::string_view text, double value = 0) {
    return writer.push({client, type, text, static_cast<std::uint64_t>(monotonic_ns()), value});
  }
  /// True once everything in the ring has been handled.
  bool is_drained() {
    return poll_until([this] {
      return __atomic_load_n(&writer.ring()->tail, __ATOMIC_ACQUIRE) ==
             __atomic_load_n(&writer.ring()->head, __ATOMIC_ACQUIRE);
    });
  }
  /// Everything there is so far.
  void take() {
    auto [batch, now] = session.take();
    for (const auto& row : batch.tasks) tasks.push_back(row);
    for (const auto& row : batch.samples) samples.push_back(row);
    for (auto& row : batch.phases) phases.push_back(std::move(row));
    for (auto& row : batch.values) values.push_back(std::move(row));
    for (auto& row : batch.attributes) attributes.push_back(std::move(row));
    for (auto& row : batch.notices) notices.push_back(std::move(row));
    state = now;
  }
  int samples_of(std::string_view kind) const {
    return static_cast<int>(std::count_if(samples.begin(), samples.end(),
                                          [&](const auto& row) { return row.kind == kind; }));
  }
  /// The last row of a path.
  PhaseRow phase(const std::string& path) const {
    PhaseRow last;
    for (const PhaseRow& row : phases) {
      if (row.path == path) last = row;
    }
    return last;
  }

  Session session;
  RingWriter writer;
  std::vector<TaskRow> tasks;
  std::vector<SampleRow> samples;
  std::vector<PhaseRow> phases;
  std::vector<ValueRow> values;
  std::vector<AttributeRow> attributes;
  std::vector<NoticeRow> notices;
  RunState state;

 private:
  std::thread edges_;
};

}  // namespace sphase::testing
