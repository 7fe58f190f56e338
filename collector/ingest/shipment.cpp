#include "collector/ingest/shipment.h"

namespace sphase {
namespace {

bool take(const Segment& runs, std::size_t row, std::string_view name, std::string& out) {
  const SegmentColumn* column = runs.find(name);
  if (column == nullptr || column->type() != SegmentColumn::Type::kText || column->is_null(row)) {
    return false;
  }
  out = column->text(row);
  return true;
}

bool take(const Segment& runs, std::size_t row, std::string_view name, std::int64_t& out) {
  const SegmentColumn* column = runs.find(name);
  const auto value = column != nullptr ? column->maybe_integer(row) : std::nullopt;
  out = value.value_or(0);
  return value.has_value();
}

}  // namespace

std::optional<RunName> run_name(const Segment& runs, std::size_t row) {
  RunName name;
  const bool whole = take(runs, row, "cluster", name.cluster) &&
                     take(runs, row, "step", name.step) && take(runs, row, "node", name.node) &&
                     take(runs, row, "job_id", name.job_id) &&
                     take(runs, row, "restart_count", name.restart_count) &&
                     take(runs, row, "start_ns", name.start_ns);
  return whole ? std::optional(std::move(name)) : std::nullopt;
}

}  // namespace sphase
