// How far the clocks of nodes were from the collector's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/timeline/timeline.h"
#include "common/sqlite_db.h"

namespace sphase {

class NodeClocks {
 public:
  static Result<NodeClocks> prepare(Database& db);

  /// The clock of `node` at `time_ns` (of either clock: they are hours apart at most). The last
  /// measurement before, or the first one after. nullopt: it never shipped.
  Result<std::optional<NodeClock>> at(const std::string& node, std::int64_t time_ns);

 private:
  NodeClocks(Statement before, Statement after)
      : before_(std::move(before)), after_(std::move(after)) {}

  Statement before_, after_;
};

/// What is to be taken off the node's times. Unit: ns. 0 where the clocks may as well be the same:
/// the offset is no larger than what is not sure.
std::int64_t shift_of(const NodeClock& clock);

}  // namespace sphase
