// Rows on their way from a node.db into cluster.db: what a NodeReader reads, a Store takes, and the
// wire carries in between.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/segment.h"

namespace sphase {

/// Tables whose rows may be sealed, in the order of RunSeen::sealed_ns.
inline constexpr std::array<std::string_view, 3> kSealedTables = {"sample", "phase", "counter"};

/// What tells a run from every other one; columns of table `run`.
struct RunName {
  std::string cluster, step, node;
  std::int64_t job_id = 0, restart_count = 0, start_ns = 0;

  auto operator<=>(const RunName&) const = default;
};

/// How much of a run somebody has.
struct RunSeen {
  bool known = false;
  std::int64_t last_ns = 0;                              // last sign of life
  std::optional<std::int64_t> end_ns;                    // once it has ended
  std::array<std::int64_t, 3> sealed_ns = {-1, -1, -1};  // [kSealedTables] newest segment, -1: none

  bool operator==(const RunSeen&) const = default;
};

/// About the file itself.
struct NodeFacts {
  std::string node, id;  // meta.node, meta.id; "" in a file of an older version
  std::optional<std::string> rows_deleted, damaged;

  bool operator==(const NodeFacts&) const = default;
};

/// Rows of one table that are not sealed, of several runs: the first column, "run", is the place of
/// their run in Shipment::runs, NULL for a notice of none.
struct RawRows {
  std::string table;
  Segment rows;
};

/// A segment as it lies in node.db.
struct SealedRows {
  std::uint32_t run = 0;    // place in Shipment::runs
  std::uint32_t table = 0;  // place in kSealedTables
  std::int64_t sealed_ns = 0;
  std::string data;
};

struct Shipment {
  NodeFacts facts;
  Segment runs;  // columns of table `run` but run_id and change
  std::vector<RawRows> raw;
  std::vector<SealedRows> sealed;
  /// With this shipment and those before it, everything up to this number of run.change is told.
  std::int64_t change = 0;

  bool empty() const { return runs.rows() == 0 && raw.empty() && sealed.empty(); }
};

/// What one shipment holds at most: more of it goes into the next.
inline constexpr std::size_t kShipmentRows = 4096;  // of one table
inline constexpr std::size_t kShipmentRuns = 256;
inline constexpr std::size_t kShipmentSegments = 4096;
/// Once there are so many B of segments, or of texts in the rows beside them, no more are added. A
/// single segment, or the texts of a single row, may be larger.
inline constexpr std::size_t kShipmentBytes = 1 << 20;

/// The name of the run in one row of Shipment::runs; nullopt where a column of it is missing.
std::optional<RunName> run_name(const Segment& runs, std::size_t row);

}  // namespace sphase
