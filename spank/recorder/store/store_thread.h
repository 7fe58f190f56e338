// Carries rows from the session to node.db, on a thread of its own: a slow disk or a busy database
// never delays a marker or slurmstepd. Once a second while programs mark, else every ten seconds: a
// commit costs ten times what a sample does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "spank/recorder/session.h"
#include "spank/recorder/store/run_store.h"

namespace sphase {

class StoreThread {
 public:
  StoreThread(const sphase_link_start& start, Session& session)
      : start_(start), session_(session), store_(start), thread_([this] { run(); }) {}
  ~StoreThread();

  /// Stores what there is now and ends the thread; `stored` is called on that thread.
  void finish(std::function<void()> stored);

  /// A task began or ended, or a program connected: what there is is stored within kCommitMs.
  void soon();

  static constexpr int kFirstMs = 100;  // so that even a recorder killed at once has left its run
  static constexpr int kCommitMs = 1000;
  static constexpr int kQuietMs = 10'000;  // nobody marks: there are periodic samples alone
  static constexpr int kRetryMs = 5000;    // after a failure
  static constexpr int kLastTries = 3;     // once the step is over; the process has 10 s then

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  bool wait_until(Clock::time_point& due, Clock::time_point earliest);
  bool commit();
  void leave_note();

  sphase_link_start start_;
  Session& session_;
  RunStore store_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool finishing_ = false;
  bool soon_ = false;
  std::function<void()> stored_;
  std::string failure_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sphase
