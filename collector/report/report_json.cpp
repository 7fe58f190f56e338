#include <nlohmann/json.hpp>

#include "collector/learn/audit.h"
#include "collector/page/flag_words.h"
#include "collector/report/format.h"
#include "collector/report/report_print.h"

namespace sphase {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json flags_of(std::uint32_t flags) {
  Json words = Json::array();
  for (const auto& flag : flag_words()) {
    if (flags & flag.bit) words.push_back(flag.word);
  }
  return words;
}

/// Before job_submit/phase_resize changed anything, which is told by its line in AdminComment; what
/// it did not change is as the record has it.
Json original_request_of(const JobFacts& job) {
  const auto audit = job.admin_comment ? parse_audit(*job.admin_comment) : std::nullopt;
  const AuditSizes asked = audit ? audit->asked : AuditSizes{};
  const AuditSizes set = audit ? audit->set : AuditSizes{};
  Maybe nodes = asked.nodes, time_s;
  MaybeText memory;
  if (asked.time_min) time_s = *asked.time_min * 60;
  if (asked.memory_mib) {
    memory = std::to_string(*asked.memory_mib) + "M per " + (asked.memory_per_cpu ? "CPU" : "node");
  }
  if (!nodes && !set.nodes) nodes = job.requested_nodes;
  if (!time_s && !set.time_min) time_s = job.requested_time_limit_s;
  if (!memory && !set.memory_mib) memory = job.requested_memory;
  return {{"nodes", json(nodes)},
          {"tasks", json(asked.tasks)},
          {"cpus_per_task", json(asked.cpus)},
          {"memory", json(memory)},
          {"time_limit_s", json(time_s)},
          {"changed_at_submission", set.any()}};
}

Json job_of(const Timeline& timeline) {
  const JobFacts& job = timeline.job;
  return {{"cluster", job.cluster},
          {"job_id", job.job_id},
          {"restart_count", job.restart_count},
          {"array_job_id", json(job.array_job_id)},
          {"array_task_id", json(job.array_task_id)},
          {"het_job_id", json(job.het_job_id)},
          {"het_offset", json(job.het_offset)},
          {"name", json(job.name)},
          {"user", json(job.user)},
          {"uid", json(job.uid)},
          {"account", json(job.account)},
          {"partition", json(job.partition)},
          {"qos", json(job.qos)},
          {"state", json(job.state)},
          {"state_reason", json(job.state_reason)},
          {"exit_code", json(job.exit_code)},
          {"submit_time_s", json(job.submit_s)},
          {"eligible_time_s", json(job.eligible_s)},
          {"start_time_s", json(job.start_s)},
          {"end_time_s", json(job.end_s)},
          {"time_limit_s", json(job.time_limit_s)},
          {"suspended_s", json(job.suspended_s)},
          {"requested_nodes", json(job.requested_nodes)},
          {"requested_cpus", json(job.requested_cpus)},
          {"requested_memory", json(job.requested_memory)},
          {"requested_time_limit_s", json(job.requested_time_limit_s)},
          {"original_request", original_request_of(job)},
          {"array_tasks", json(job.array_tasks)},
          {"helper_of", json(job.helper_of)},
          {"helpers", timeline.helpers},
          {"records", json(job.source)},
          {"running", timeline.running},
          {"begin_ns", timeline.begin_ns},
          {"end_ns", timeline.end_ns}};
}

Json clocks_of(const Timeline& timeline) {
  Json clocks = Json::array();
  for (const auto& clock : timeline.clocks) {
    clocks.push_back(
        {{"node", clock.node}, {"offset_ns", clock.offset_ns}, {"band_ns", clock.band_ns}});
  }
  return clocks;
}

Json allocation_of(const Allocation& allocation) {
  Json nodes = Json::array();
  for (const auto& node : allocation.nodes) {
    nodes.push_back({{"node", node.node},
                     {"cpus", json(node.cpus)},
                     {"memory_bytes", json(node.memory_bytes)}});
  }
  return {{"begin_ns", allocation.begin_ns},
          {"end_ns", json(allocation.end_ns)},
          {"state", json(allocation.state)},
          {"expression", json(allocation.expression)},
          {"node_count", json(allocation.node_count)},
          {"cpus", json(allocation.cpus)},
          {"memory_bytes", json(allocation.memory_bytes)},
          {"deduced", allocation.deduced},
          {"nodes", nodes}};
}

Json suspension_of(const Suspension& suspension) {
  return {{"begin_ns", suspension.begin_ns}, {"end_ns", json(suspension.end_ns)}};
}

Json wait_of(const WaitReason& wait) {
  return {{"begin_ns", wait.begin_ns}, {"end_ns", json(wait.end_ns)}, {"reason", wait.reason}};
}

Json node_of(const NodeUse& node) {
  return {{"node", node.node},
          {"state", node.idle     ? "idle"
                    : node.silent ? "silent"
                                  : "used"},
          {"time_s", node.time_s},
          {"unknown_s", node.unknown_s},
          {"cpu_share_ratio", node.cpu_share},
          {"cpus", json(node.cpus)},
          {"cpu_time_ns", json(node.cpu_time_ns)},
          {"cpu_allocated_ns", json(node.cpu_allocated_ns)},
          {"memory_peak_bytes", json(node.memory_peak_bytes)},
          {"memory_allocated_bytes", json(node.memory_allocated_bytes)},
          {"io_read_bytes", json(node.io.read_bytes)},
          {"io_write_bytes", json(node.io.write_bytes)},
          {"io_read_call_bytes", json(node.io.read_call_bytes)},
          {"io_write_call_bytes", json(node.io.write_call_bytes)},
          {"wasted_node_s", json(node.wasted_node_s)},
          {"flags", flags_of(node.flags)}};
}

Json nodes_of(const std::vector<NodeUse>& uses) {
  Json nodes = Json::array();
  for (const auto& node : uses) nodes.push_back(node_of(node));
  return nodes;
}

Json events_of(const EventCounts& counts) {
  Json events = Json::object();
  for (const auto& event : counts.events()) {
    events[event.name] = {{"count", event.count}, {"tasks", event.parts}, {"scaled", event.scaled}};
  }
  return events;
}

Json source_of(const MaybeText& source, const MaybeText& reason) {
  return {{"source", json(source)}, {"reason", json(reason)}};
}

Json run_of(const Run& run) {
  return {{"step", run.step},
          {"node", run.node},
          {"begin_ns", run.begin_ns},
          {"end_ns", run.end_ns},
          {"ended", run.ended},
          {"lost", run.lost},
          {"cpu", source_of(run.cpu_source, run.cpu_reason)},
          {"memory", source_of(run.memory_source, run.memory_reason)},
          {"io", source_of(run.io_source, run.io_reason)},
          {"events", source_of(run.counter_source, run.counter_reason)},
          {"markers", run.markers},
          {"edge_lag_p50_ns", json(run.edge_lag_p50_ns)},
          {"edge_lag_p99_ns", json(run.edge_lag_p99_ns)},
          {"recorder_cpu_ns", json(run.recorder_cpu_ns)},
          {"recorder_rss_bytes", json(run.recorder_rss_bytes)}};
}

Json row_of(const UsageRow& row, bool with_nodes) {
  Json json_row = {
      {"kind", word_of(row.kind)},
      {"level", row.level},
      {"name", row.name},
      {"path", row.path},
      {"step", row.step},
      {"number", row.number > 0 ? Json(row.number) : Json(nullptr)},
      {"instances", row.instances},
      {"begin_ns", row.begin_ns},
      {"end_ns", row.end_ns},
      {"time_ns", row.time_ns},
      {"shortest_ns", json(row.shortest_ns)},
      {"mean_ns", row.instances > 0 ? Json(row.duration_ns / row.instances) : Json(nullptr)},
      {"longest_ns", json(row.longest_ns)},
      {"cpus_allocated", json(row.cpus_allocated())},
      {"cpu_time_ns", json(row.cpu_time_ns)},
      {"cpu_allocated_ns", json(row.cpu_allocated_ns)},
      {"efficiency_ratio", json(row.efficiency())},
      {"memory_peak_bytes", json(row.memory_peak_bytes)},
      {"io_read_bytes", json(row.io.read_bytes)},
      {"io_write_bytes", json(row.io.write_bytes)},
      {"io_read_call_bytes", json(row.io.read_call_bytes)},
      {"io_write_call_bytes", json(row.io.write_call_bytes)},
      {"allocated_node_s", json(row.allocated_node_s)},
      {"wasted_node_s", json(row.wasted_node_s)},
      {"imbalance_cpu_ratio", json(row.imbalance_cpu)},
      {"imbalance_wall_ratio", json(row.imbalance_wall)},
      {"edge_lag_ns", json(row.edge_lag_ns)},
      {"instructions", json(row.events.instructions())},
      {"instructions_per_cycle", json(row.events.instructions_per_cycle())},
      {"misses_per_kilo_instruction", json(row.events.misses_per_kilo_instruction())},
      {"gflops", json(row.events.gflops(row.time_ns))},
      {"events", events_of(row.events)},
      {"tasks", row.tasks},
      {"node_count", row.node_count},
      {"flags", flags_of(row.flags)}};
  if (with_nodes) json_row["nodes"] = nodes_of(row.nodes);
  return json_row;
}

Json start_of(const Timeline& timeline, const ReportOptions& options) {
  Json start;
  start["job"] = job_of(timeline);
  start["allocations"] = Json::array();
  for (const auto& allocation : timeline.allocations) {
    start["allocations"].push_back(allocation_of(allocation));
  }
  start["suspensions"] = Json::array();
  for (const auto& suspension : timeline.suspensions) {
    start["suspensions"].push_back(suspension_of(suspension));
  }
  start["waits"] = Json::array();
  for (const auto& wait : timeline.waits) start["waits"].push_back(wait_of(wait));
  start["rows"] = Json::array();
  for (const auto& row : options.instances ? timeline.detail : timeline.rows) {
    start["rows"].push_back(row_of(row, options.nodes));
  }
  start["nodes"] = nodes_of(timeline.nodes);
  start["runs"] = Json::array();
  for (const auto& run : timeline.runs) start["runs"].push_back(run_of(run));
  start["notices"] = Json::array();
  for (const auto& notice : timeline.notices) {
    start["notices"].push_back({{"node", notice.node},
                                {"step", notice.step},
                                {"time_ns", notice.time_ns},
                                {"code", notice.code},
                                {"text", notice.text}});
  }
  start["attributes"] = Json::array();
  for (const auto& run : timeline.runs) {
    for (const auto& [key, value] : run.attributes) {
      start["attributes"].push_back(
          {{"step", run.step}, {"node", run.node}, {"key", key}, {"value", value}});
    }
  }
  start["clocks"] = clocks_of(timeline);
  start["missing"] = timeline.missing;
  return start;
}

}  // namespace

std::string report_json(const std::vector<Timeline>& starts, const ReportOptions& options) {
  Json report;
  report["starts"] = Json::array();
  for (const auto& timeline : starts) report["starts"].push_back(start_of(timeline, options));
  // ASCII alone: what came out of a job cannot steer a terminal. Bytes that are no text become '?'.
  return report.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace sphase
