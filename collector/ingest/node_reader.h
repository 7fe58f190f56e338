// Reads what is new in a node.db, in shipments.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collector/ingest/shipment.h"
#include "common/sqlite_db.h"

namespace sphase {

/// What the receiver has of a run.
using SeenOf = std::function<Result<RunSeen>(const RunName&)>;

/// One pass over a node.db within the read transaction that the caller has begun: all shipments of
/// it are of the same moment.
///
/// Of a run that the receiver knows only the newer rows are read: segments that were sealed later,
/// and rows whose time is later than the last sign of life that it has seen, less an overlap. When
/// a run has ended, all its rows that are not sealed come once more, so that nothing that was
/// stamped early and stored late is missed.
class NodeReader {
 public:
  /// Runs with a change above `after`, -1: all. `notices_after`: rowid of the last notice of no run
  /// that is known.
  static Result<NodeReader> prepare(sqlite3* node, std::int64_t after, SeenOf seen,
                                    std::int64_t notices_after = 0);

  /// The next shipment; nullopt: that was all. The last one has the file's own change.
  Result<std::optional<Shipment>> next();

  std::int64_t runs() const { return runs_; }                      // looked at
  std::int64_t last_notice() const { return last_notice_; }        // rowid, as `notices_after`
  std::int64_t values_refused() const { return values_refused_; }  // of a type that cannot be

 private:
  struct Child {
    std::string table;
    std::optional<Statement> rows;  // of a run, from a time on
    std::optional<Segment> taken;   // its rows in the shipment under way
  };
  /// The run whose rows are being read; it may span several shipments.
  struct Current {
    std::int64_t run_id = 0, change = 0;
    std::uint32_t place = 0;  // in the shipment under way
    RunName name;
    RunSeen seen;
    bool going_on = false;                                         // in an earlier shipment already
    std::vector<std::pair<std::uint32_t, std::int64_t>> segments;  // table, segment_id
    std::size_t segment = 0, child = 0;
    bool bound = false;  // the child's statement is under way
  };

  explicit NodeReader(sqlite3* node) : node_(node) {}
  Status prepare_statements(std::int64_t after);
  Result<NodeFacts> read_facts();
  Status begin_run();
  Status ask();
  void put_run(Segment& runs, bool whole);
  Status list_segments();
  Result<bool> fill(Shipment& shipment);
  Result<bool> take_segments(Shipment& shipment);
  Result<bool> take_rows();
  Status take_free_notices(Shipment& shipment);
  bool is_full(const Segment& rows) const;
  void append(SegmentColumn& to, const Statement& row, int at);
  void append(Segment& to, const Statement& row, int first, std::optional<std::int64_t> place);
  void finish(Shipment& shipment);

  sqlite3* node_;
  SeenOf seen_;
  int version_ = 0;
  std::optional<Statement> run_row_, segment_list_, segment_data_;
  std::vector<Child> children_;
  std::optional<Current> current_;
  std::size_t sealed_bytes_ = 0, text_bytes_ = 0;  // in the shipment under way
  std::int64_t runs_ = 0, last_notice_ = 0, values_refused_ = 0;
  std::int64_t told_ = 0;  // everything up to this change is told
  std::int64_t file_change_ = 0;
  bool over_ = false, notices_read_ = false;
  NodeFacts facts_;
};

}  // namespace sphase
