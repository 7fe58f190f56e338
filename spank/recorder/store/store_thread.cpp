#include "spank/recorder/store/store_thread.h"

#include <chrono>

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

void StoreThread::run() {
  // The first commit soon, so that even a recorder that is killed at once has left its run.
  int wait_ms = 100;
  std::unique_lock lock(mutex_);
  while (!finishing_) {
    woken_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return finishing_; });
    if (finishing_) break;
    lock.unlock();
    session_.look_for_ended_clients();
    wait_ms = commit() ? kCommitMs : kRetryMs;
    lock.lock();
  }
  lock.unlock();
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
