#include "collector/timeline/usage_row.h"

#include <algorithm>
#include <limits>

namespace sphase {
namespace {

std::optional<double> ratio(const Maybe& used, const Maybe& allocated) {
  if (!used || !allocated || *allocated <= 0) return std::nullopt;
  return static_cast<double>(*used) / static_cast<double>(*allocated);
}

}  // namespace

std::optional<double> wasted_node_s(const NodeUse& use) {
  if (use.idle) return use.time_s * use.cpu_share;
  const double known_s = use.time_s - use.unknown_s;
  if (use.silent || (known_s <= 0 && use.time_s > 0)) return std::nullopt;
  auto cpu = ratio(use.cpu_busy_ns ? use.cpu_busy_ns : use.cpu_time_ns, use.cpu_allocated_ns);
  if (cpu && known_s > 0) *cpu *= use.time_s / known_s;
  const auto memory = ratio(use.memory_peak_bytes, use.memory_allocated_bytes);
  if (!cpu && !memory) return std::nullopt;
  const double used = std::clamp(std::max(cpu.value_or(0), memory.value_or(0)), 0.0, 1.0);
  return (1 - used) * known_s * use.cpu_share;
}

void add(Maybe& total, const Maybe& value, std::uint32_t& flags) {
  if (!value) {
    flags |= kPartial;
    return;
  }
  std::int64_t sum = 0;
  const bool overflow = __builtin_add_overflow(total.value_or(0), *value, &sum);
  total = overflow ? std::numeric_limits<std::int64_t>::max() : sum;
}

namespace {

void flag_unknown(UsageRow& row, const NodeUse& node) {
  row.flags |= node.flags;
  if (node.silent) row.flags |= kPartial;
  if (node.silent || node.idle) return;
  if (!ratio(node.cpu_time_ns, node.cpu_allocated_ns)) row.flags |= kNoCpu;
  if (!ratio(node.memory_peak_bytes, node.memory_allocated_bytes)) row.flags |= kNoMemory;
}

void total_cpu(UsageRow& row) {
  std::uint32_t used_flags = 0, allocated_flags = 0;
  for (const auto& node : row.nodes) {
    add(row.cpu_time_ns, node.cpu_time_ns, used_flags);
    add(row.cpu_allocated_ns, node.cpu_allocated_ns, allocated_flags);
  }
  // A sum of some nodes' CPUs would make the efficiency look better than it is.
  if (allocated_flags != 0) row.cpu_allocated_ns.reset();
  if (row.cpu_time_ns) row.flags |= used_flags;
}

}  // namespace

void flag_events(UsageRow& row) {
  if (row.events.partial()) row.flags |= kSomeCounted;
  if (row.events.scaled()) row.flags |= kScaled;
}

void measure_waste(std::vector<NodeUse>& nodes) {
  for (auto& node : nodes) node.wasted_node_s = wasted_node_s(node);
}

void add(IoCounters& total, const IoCounters& more) {
  std::uint32_t ignored = 0;
  add(total.read_bytes, more.read_bytes, ignored);
  add(total.write_bytes, more.write_bytes, ignored);
  add(total.read_call_bytes, more.read_call_bytes, ignored);
  add(total.write_call_bytes, more.write_call_bytes, ignored);
}

void total_up_io(UsageRow& row) {
  row.io = {};
  for (const auto& node : row.nodes) add(row.io, node.io);
}

void total_up(UsageRow& row) {
  total_cpu(row);
  total_up_io(row);
  if (!row.nodes.empty()) row.allocated_node_s = 0;
  for (const auto& node : row.nodes) {
    flag_unknown(row, node);
    *row.allocated_node_s += node.time_s * node.cpu_share;
    if (node.wasted_node_s) row.wasted_node_s = row.wasted_node_s.value_or(0) + *node.wasted_node_s;
    if (node.memory_peak_bytes) {
      row.memory_peak_bytes = std::max(row.memory_peak_bytes.value_or(0), *node.memory_peak_bytes);
    }
  }
  row.node_count = static_cast<int>(row.nodes.size());
}

namespace {

void larger(Maybe& most, const Maybe& value) {
  if (value && (!most || *value > *most)) most = value;
}

Maybe beyond(const Maybe& at_end, const Maybe& before) {
  if (!at_end || !before) return std::nullopt;
  return std::max<std::int64_t>(0, *at_end - *before);
}

/// Instances of tasks that drift apart overlap: what the earlier one has counted already is not
/// added again.
void merge_io(NodeUse& into, const NodeUse& more) {
  const bool same_run = into.io_run_id > 0 && into.io_run_id == more.io_run_id;
  if (!same_run || more.io_begin_ns >= into.io_end_ns) {
    add(into.io, more.io);
  } else if (more.io_end_ns > into.io_end_ns) {
    const IoCounters &end = more.io_at_end, &before = into.io_at_end;
    add(into.io,
        {beyond(end.read_bytes, before.read_bytes), beyond(end.write_bytes, before.write_bytes),
         beyond(end.read_call_bytes, before.read_call_bytes),
         beyond(end.write_call_bytes, before.write_call_bytes)});
  }
  if (!same_run) into.io_run_id = -1;
  if (more.io_end_ns <= into.io_end_ns) return;
  into.io_end_ns = more.io_end_ns;
  into.io_at_end = more.io_at_end;
}

void merge_node(NodeUse& into, const NodeUse& more) {
  std::uint32_t ignored = 0;
  into.time_s += more.time_s;
  into.unknown_s += more.unknown_s;
  add(into.cpu_time_ns, more.cpu_time_ns, into.flags);
  add(into.cpu_busy_ns, more.cpu_busy_ns, ignored);
  if (into.cpu_allocated_ns && more.cpu_allocated_ns) {
    *into.cpu_allocated_ns += *more.cpu_allocated_ns;
  } else {
    into.cpu_allocated_ns.reset();
  }
  larger(into.memory_peak_bytes, more.memory_peak_bytes);
  larger(into.memory_allocated_bytes, more.memory_allocated_bytes);
  merge_io(into, more);
  into.flags |= more.flags;
  into.idle = into.idle && more.idle;
  into.silent = into.silent && more.silent;
  if (more.wasted_node_s) {
    into.wasted_node_s = into.wasted_node_s.value_or(0) + *more.wasted_node_s;
  }
}

}  // namespace

void merge_nodes(std::vector<NodeUse>& into, const std::vector<NodeUse>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    // Nearly always the same nodes in the same order.
    auto found = i < into.size() && into[i].node == more[i].node
                     ? into.begin() + static_cast<std::ptrdiff_t>(i)
                     : std::find_if(into.begin(), into.end(),
                                    [&](const NodeUse& use) { return use.node == more[i].node; });
    if (found == into.end()) {
      into.push_back(more[i]);
    } else {
      merge_node(*found, more[i]);
    }
  }
}

}  // namespace sphase
