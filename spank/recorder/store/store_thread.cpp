#include "spank/recorder/store/store_thread.h"

#include <algorithm>
#include <utility>

#include "common/note.h"
#include "common/vocabulary.h"

namespace sphase {

StoreThread::~StoreThread() {
  finish([] {});
  if (thread_.joinable()) thread_.join();
}

void StoreThread::finish(std::function<void()> stored) {
  {
    const std::lock_guard lock(mutex_);
    if (finishing_) return;
    finishing_ = true;
    stored_ = std::move(stored);
  }
  woken_.notify_all();
}

void StoreThread::soon() {
  {
    const std::lock_guard lock(mutex_);
    soon_ = true;
  }
  woken_.notify_all();
}

/// Sleeps until `due`, which soon() may bring forward to `earliest`. False: the step is over.
bool StoreThread::wait_until(Clock::time_point& due, Clock::time_point earliest) {
  std::unique_lock lock(mutex_);
  while (!finishing_) {
    if (std::exchange(soon_, false)) due = std::min(due, earliest);
    if (Clock::now() >= due) return true;
    woken_.wait_until(lock, due, [this] { return finishing_ || soon_; });
  }
  return false;
}

void StoreThread::run() {
  using std::chrono::milliseconds;
  Clock::time_point due = Clock::now() + milliseconds(kFirstMs);
  Clock::time_point earliest = due;
  while (wait_until(due, earliest)) {
    session_.look_for_ended_clients();
    const bool done = commit();
    const Clock::time_point now = Clock::now();
    earliest = now + milliseconds(done ? kCommitMs : kRetryMs);
    due = done && !session_.has_clients() ? now + milliseconds(kQuietMs) : earliest;
  }
  // A busy file may only be held by somebody else: each try waits for two seconds.
  bool done = false;
  for (int tries = 0; tries < kLastTries && !done; ++tries) done = commit();
  if (!done) leave_note();
  if (stored_) stored_();
}

bool StoreThread::commit() {
  auto [batch, state] = session_.take();
  store_.add(std::move(batch));
  const auto done = store_.commit(state);
  failure_ = done ? "" : done.error();
  return static_cast<bool>(done);
}

void StoreThread::leave_note() {
  const std::string text = "node.db could not be written, this run is lost: " + failure_;
  const std::string code(notice::kStoreFailed);
  const sphase_note note{start_.cluster, start_.job_id, start_.restart_count, start_.step,
                         start_.node,    code.c_str(),  text.c_str()};
  // Nobody is left to tell if this fails as well.
  (void)sphase_note_write(start_.run_dir, &note);
}

}  // namespace sphase
