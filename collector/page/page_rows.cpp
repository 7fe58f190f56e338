// The phase table.
#include "collector/page/page_json.h"

namespace sphase {
namespace {

const char* kind_of(UsageRow::Kind kind) {
  switch (kind) {
    case UsageRow::Kind::kJob:
      return "job";
    case UsageRow::Kind::kJobPhase:
      return "job phase";
    case UsageRow::Kind::kStep:
      return "step";
    case UsageRow::Kind::kTaskPhase:
      return "task phase";
    case UsageRow::Kind::kOutside:
      break;
  }
  return "outside";
}

/// Names of the columns, in the order of row_json.
constexpr const char* kFields[] = {"kind",
                                   "level",
                                   "name",
                                   "path",
                                   "step",
                                   "number",
                                   "instances",
                                   "begin_us",
                                   "end_us",
                                   "time_us",
                                   "shortest_us",
                                   "longest_us",
                                   "tasks",
                                   "node_count",
                                   "cpus",
                                   "cpus_busy",
                                   "efficiency",
                                   "cpu_time_s",
                                   "memory_bytes",
                                   "read_bytes",
                                   "written_bytes",
                                   "wasted_node_s",
                                   "allocated_node_s",
                                   "imbalance",
                                   "instructions",
                                   "ipc",
                                   "misses",
                                   "gflops",
                                   "flags"};

Json us(const Maybe& time_ns) { return time_ns ? Json(*time_ns / 1000) : Json(nullptr); }

Json seconds(const Maybe& time_ns) {
  return time_ns ? Json(static_cast<double>(*time_ns) / 1e9) : Json(nullptr);
}

Json row_json(PageStart& start, const UsageRow& row) {
  return {kind_of(row.kind),
          row.level,
          start.texts.index(row.name),
          start.texts.index(row.path),
          start.texts.index(row.step),
          row.number,
          row.instances,
          start.us(row.begin_ns),
          start.us(row.end_ns),
          row.time_ns / 1000,
          us(row.shortest_ns),
          us(row.longest_ns),
          row.tasks,
          row.node_count,
          json_or_null(row.cpus_allocated()),
          json_or_null(row.cpus_busy()),
          json_or_null(row.efficiency()),
          seconds(row.cpu_time_ns),
          json_or_null(row.memory_peak_bytes),
          json_or_null(row.io.read_call_bytes),
          json_or_null(row.io.write_call_bytes),
          json_or_null(row.wasted_node_s),
          json_or_null(row.allocated_node_s),
          json_or_null(row.imbalance_cpu),
          json_or_null(row.events.instructions()),
          json_or_null(row.events.instructions_per_cycle()),
          json_or_null(row.events.misses_per_kilo_instruction()),
          json_or_null(row.events.gflops(row.time_ns)),
          row.flags};
}

Json table_json(PageStart& start, const std::vector<UsageRow>& rows, std::size_t most) {
  Json table = Json::array();
  for (const auto& row : rows) {
    if (table.size() == most) break;
    table.push_back(row_json(start, row));
  }
  return table;
}

}  // namespace

Json rows_json(PageStart& start) {
  const std::size_t most = start.limits.rows;
  Json fields = Json::array();
  for (const char* field : kFields) fields.push_back(field);
  // Where nothing ran more than once both are the same.
  const bool same = start.timeline.detail.size() == start.timeline.rows.size();
  Json detail = same ? Json(nullptr) : table_json(start, start.timeline.detail, most);
  return {
      {"fields", std::move(fields)},
      {"summary", table_json(start, start.timeline.rows, most)},
      {"instances", std::move(detail)},
      {"rows_left_out", start.timeline.rows.size() > most ? start.timeline.rows.size() - most : 0},
      {"instances_left_out",
       start.timeline.detail.size() > most ? start.timeline.detail.size() - most : 0}};
}

}  // namespace sphase
