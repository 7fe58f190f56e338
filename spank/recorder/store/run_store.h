// Writes one run into node.db, whatever happens to that file.
#pragma once

#include <optional>
#include <string>

#include "spank/recorder/store/node_db.h"
#include "spank/recorder/store/run_rows.h"
#include "spank/recorder/store/seal.h"

namespace sphase {

/// Rows are kept in memory until they are committed: at most once a second, in one transaction. A
/// store that fails is tried again every few seconds; meanwhile at most kMaxPending rows wait, and
/// rows beyond that are dropped and counted. Not thread-safe.
class RunStore {
 public:
  explicit RunStore(const sphase_link_start& start) : start_(start) {}

  /// Takes rows over; they are gone from `batch` afterwards. Cost: none but memory.
  void add(Batch&& batch);
  /// One transaction with everything that waits and the run's own row; then older rows are sealed,
  /// where there are enough of them. Cost: 0.3 to 3 ms, and up to two seconds when another recorder
  /// holds the file; sealing see Sealer.
  Status commit(const RunState& state);

  bool anything_waits() const { return pending_.size() > 0; }
  std::int64_t samples_dropped() const { return samples_dropped_; }

  static constexpr std::size_t kMaxPending = 50'000;
  /// One run writes at most this part of the file's cap; then only its tasks, notices and periodic
  /// samples are kept. A program that marks without end must not push everybody's runs out.
  static constexpr std::uint64_t kShareOfCap = 8;

 private:
  void keep_to_share(Batch& batch);
  Status open();
  Status commit_rows(const RunState& state);
  Status try_commit(const RunState& state);
  void seal(const RunState& state);
  Status write_run(const RunState& state);
  Status insert_run();
  Status write_rows();
  Status write_counts(const std::vector<std::string>& events);
  Status import_notes();
  Status make_room(const RunState& state, Status failed);
  Status replace_damaged(const RunState& state);

  sphase_link_start start_;
  std::optional<Database> db_;
  std::optional<std::int64_t> run_id_;
  Sealer sealer_;
  int seals_failed_ = 0;  // in a row
  Batch pending_;
  std::int64_t samples_dropped_ = 0;
  std::uint64_t added_bytes_ = 0;
  bool share_noted_ = false;
  int failed_code_ = SQLITE_OK;  // of the last try_commit(); the connection forgets it at ROLLBACK
  std::vector<std::string> imported_notes_;
};

}  // namespace sphase
