// Puts shipments into cluster.db. The same shipment twice, or shipments of two copies of one file
// in any order, come to the same rows.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/ingest/shipment.h"
#include "common/sqlite_db.h"

namespace sphase {

struct StoreCount {
  std::int64_t runs = 0;     // in the shipments
  std::int64_t changed = 0;  // of these, new or with news
  std::int64_t rows = 0;     // samples, phases, … written, sealed or not
  std::int64_t refused = 0;  // rows that the tables do not allow
  std::int64_t damaged = 0;  // segments that could not be read
  std::string first_damage;  // a sentence about the first one
};

class Store {
 public:
  /// Keeps a reference to `cluster`, whose foreign keys are on.
  explicit Store(Database& cluster) : db_(cluster) {}

  /// The caller has begun a transaction; after an error it must not be committed.
  /// Cost: 3 µs per raw row, 40 µs per segment and 0.1 µs per row in it.
  Status put(const Shipment& shipment);

  /// What was written since the last commit is not there: a transaction was rolled back.
  void forget() { paths_.clear(); }

  /// How much of a run cluster.db holds.
  Result<RunSeen> seen(const RunName& name);

  const StoreCount& count() const { return count_; }

 private:
  struct Target {                     // of one run of the shipment
    std::int64_t run_id = -1;         // -1: its row could not be used
    bool older = false;               // an older word on it than ours: it adds, and changes nothing
    std::array<bool, 3> looked = {};  // [kSealedTables] what follows was read
    std::optional<std::int64_t> sealed_until_ns;       // samples before that are sealed
    std::array<std::set<std::string>, 3> sealed_keys;  // of an older word alone
  };
  /// Columns that the shipment and our table have.
  struct Shared {
    std::vector<std::string> names;
    std::vector<const SegmentColumn*> columns;
    /// Binds one row from `at` on; returns the index after it.
    int bind(Statement& to, int at, std::size_t row) const;
  };

  Result<Statement*> statement(const std::string& sql);
  Result<Shared> shared(const std::string& table, const Segment& rows);
  Result<bool> look_up(const Segment& runs, std::size_t row, const RunName& name, Target& target);
  Status put_run(const Segment& runs, std::size_t row);
  Target* target_of(const SegmentColumn& place, std::size_t row, const std::string& table);
  Status put_raw_row(const RawRows& raw, std::size_t row, const Shared& both, Target& target,
                     Statement& insert);
  Status put_raw(const RawRows& raw);
  Result<bool> wanted(const RawRows& raw, std::size_t row, Target& target);
  Status put_sealed(const SealedRows& sealed);
  Status drop_raw(const Segment& part, std::string_view table, std::int64_t run_id);
  Status note_damaged(const SealedRows& sealed, std::int64_t run_id, const std::string& why);
  Status note_path(std::int64_t run_id, const std::string& path);
  Result<std::vector<std::string>> columns_of(const std::string& table);
  Result<std::optional<std::int64_t>> sealed_until(std::int64_t run_id);
  Status read_sealed_keys(Target& target, std::size_t table);

  Database& db_;
  std::map<std::string, Statement, std::less<>> statements_;
  std::map<std::string, std::vector<std::string>> columns_;  // of our tables, without run_id
  std::vector<Target> targets_;                              // [run of the shipment]
  Target no_run_;                                            // for a notice of none
  std::set<std::pair<std::int64_t, std::string>> paths_;     // known to be in phase_path
  StoreCount count_;
};

}  // namespace sphase
