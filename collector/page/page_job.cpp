// The job, its nodes, its allocations, and what was said about them.
#include <set>

#include "collector/page/page_json.h"
#include "collector/timeline/node_spans.h"

namespace sphase {
namespace {

Json text_or_null(const MaybeText& text, std::size_t most_bytes) {
  return text ? Json(cut_text(*text, most_bytes)) : Json(nullptr);
}

const char* state_of(const NodeUse& node) {
  return node.idle ? "idle" : node.silent ? "silent" : "used";
}

/// A node that keeps what it has over a resize has one span.
std::vector<NodeSpan> joined_spans(const Timeline& timeline) {
  std::vector<NodeSpan> joined;
  std::unordered_map<std::string, std::size_t> last;  // of each node
  for (auto& span : node_spans(timeline)) {
    const auto [at, fresh] = last.try_emplace(span.node, joined.size());
    if (!fresh) {
      NodeSpan& before = joined[at->second];
      if (before.end_ns == span.begin_ns && before.cpus == span.cpus &&
          before.memory_bytes == span.memory_bytes) {
        before.end_ns = span.end_ns;
        continue;
      }
      at->second = joined.size();
    }
    joined.push_back(std::move(span));
  }
  return joined;
}

}  // namespace

Json job_json(const PageStart& start) {
  const JobFacts& job = start.timeline.job;
  const auto text = [&](const MaybeText& value) {
    return text_or_null(value, start.limits.text_bytes);
  };
  return {{"cluster", cut_text(job.cluster, start.limits.text_bytes)},
          {"job_id", job.job_id},
          {"restart_count", job.restart_count},
          {"array_job_id", json_or_null(job.array_job_id)},
          {"array_task_id", json_or_null(job.array_task_id)},
          {"het_job_id", json_or_null(job.het_job_id)},
          {"het_offset", json_or_null(job.het_offset)},
          {"uid", json_or_null(job.uid)},
          {"user", text(job.user)},
          {"account", text(job.account)},
          {"name", text(job.name)},
          {"partition", text(job.partition)},
          {"qos", text(job.qos)},
          {"state", text(job.state)},
          {"state_reason", text(job.state_reason)},
          {"exit_code", json_or_null(job.exit_code)},
          {"submit_s", json_or_null(job.submit_s)},
          {"eligible_s", json_or_null(job.eligible_s)},
          {"start_s", json_or_null(job.start_s)},
          {"end_s", json_or_null(job.end_s)},
          {"time_limit_s", json_or_null(job.time_limit_s)},
          {"suspended_s", json_or_null(job.suspended_s)},
          {"requested_nodes", json_or_null(job.requested_nodes)},
          {"requested_cpus", json_or_null(job.requested_cpus)},
          {"requested_memory", text(job.requested_memory)},
          {"records", text(job.source)}};
}

Json nodes_json(const PageStart& start) {
  Json nodes = Json::array();
  for (const auto& name : start.nodes) {
    nodes.push_back({{"node", name}, {"state", "silent"}, {"time_s", nullptr}});
  }
  for (const auto& use : start.timeline.nodes) {
    Json& node = nodes.at(start.node(use.node));
    node["state"] = state_of(use);
    node["time_s"] = use.time_s;
    node["unknown_s"] = use.unknown_s;
    node["cpus"] = json_or_null(use.cpus);
    node["cpu_time_us"] = use.cpu_time_ns ? Json(*use.cpu_time_ns / 1000) : Json(nullptr);
    node["memory_peak_bytes"] = json_or_null(use.memory_peak_bytes);
    node["memory_allocated_bytes"] = json_or_null(use.memory_allocated_bytes);
    node["wasted_node_s"] = json_or_null(use.wasted_node_s);
    node["flags"] = use.flags;
  }
  return nodes;
}

Json allocations_json(const PageStart& start) {
  Json allocations = Json::array();
  for (const auto& allocation : start.timeline.allocations) {
    const auto known = static_cast<std::int64_t>(allocation.nodes.size());
    allocations.push_back({{"begin_us", start.us(allocation.begin_ns)},
                           {"end_us", start.us(allocation.end_ns)},
                           {"state", text_or_null(allocation.state, start.limits.text_bytes)},
                           {"node_count", allocation.node_count.value_or(known)},
                           {"cpus", json_or_null(allocation.cpus)},
                           {"memory_bytes", json_or_null(allocation.memory_bytes)},
                           {"deduced", allocation.deduced}});
  }
  return allocations;
}

/// [node, begin_us, end_us, cpus, memory_bytes]
Json spans_json(const PageStart& start) {
  Json spans = Json::array();
  for (const auto& span : joined_spans(start.timeline)) {
    spans.push_back({start.node(span.node), start.us(span.begin_ns), start.us(span.end_ns),
                     json_or_null(span.cpus), json_or_null(span.memory_bytes)});
  }
  return spans;
}

/// [time_us, node, step, code, text], texts as indices
Json notices_json(PageStart& start) {
  Json notices = Json::array();
  for (const auto& notice : start.timeline.notices) {
    if (notices.size() == start.limits.texts) break;
    notices.push_back({start.us(notice.time_ns), start.node(notice.node),
                       start.texts.index(notice.step), start.texts.index(notice.code),
                       start.texts.index(notice.text)});
  }
  return notices;
}

/// [node, offset_us, band_us]
Json clocks_json(const PageStart& start) {
  Json clocks = Json::array();
  for (const auto& clock : start.timeline.clocks) {
    clocks.push_back({start.node(clock.node), static_cast<double>(clock.offset_ns) / 1e3,
                      static_cast<double>(clock.band_ns) / 1e3});
  }
  return clocks;
}

/// [key, value], each once
Json attributes_json(const PageStart& start) {
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& run : start.timeline.runs) {
    for (const auto& [key, value] : run.attributes) {
      if (known.size() == start.limits.texts) break;
      known.emplace(cut_text(key, start.limits.text_bytes),
                    cut_text(value, start.limits.text_bytes));
    }
  }
  Json attributes = Json::array();
  for (const auto& [key, value] : known) attributes.push_back({key, value});
  return attributes;
}

}  // namespace sphase
