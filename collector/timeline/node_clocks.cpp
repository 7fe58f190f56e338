#include "collector/timeline/node_clocks.h"

#include <cstdlib>

namespace sphase {
namespace {

Result<std::optional<NodeClock>> one(Statement& row, const std::string& node,
                                     std::int64_t time_ns) {
  row.bind(1, node).bind(2, time_ns);
  std::optional<NodeClock> clock;
  if (row.step()) clock = NodeClock{node, row.integer(0), row.integer(1)};
  if (auto read = row.run(); !read) return Error{read.error()};
  return clock;
}

}  // namespace

Result<NodeClocks> NodeClocks::prepare(Database& db) {
  auto before = db.prepare(
      "SELECT offset_ns, band_ns FROM node_clock WHERE node = ? AND time_ns <= ?"
      " ORDER BY time_ns DESC LIMIT 1");
  if (!before) return Error{before.error()};
  auto after = db.prepare(
      "SELECT offset_ns, band_ns FROM node_clock WHERE node = ? AND time_ns > ?"
      " ORDER BY time_ns LIMIT 1");
  if (!after) return Error{after.error()};
  return NodeClocks(std::move(*before), std::move(*after));
}

Result<std::optional<NodeClock>> NodeClocks::at(const std::string& node, std::int64_t time_ns) {
  // A run's stamps are the clock's as it was when the run began: what came later does not bend
  // them.
  auto before = one(before_, node, time_ns);
  return !before || *before ? before : one(after_, node, time_ns);
}

std::int64_t shift_of(const NodeClock& clock) {
  return std::llabs(clock.offset_ns) > clock.band_ns ? clock.offset_ns : 0;
}

}  // namespace sphase
