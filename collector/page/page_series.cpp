// Lines over time: CPUs busy, memory, waste; of each node and of all of them together.
#include <algorithm>
#include <cmath>
#include <map>

#include "collector/page/page_json.h"
#include "collector/timeline/node_use.h"

namespace sphase {
namespace {

constexpr double kPerUnit = 1e4;  // four digits behind the point

enum class Unit { kWhole, kFraction };

/// {"t": [us since the point before], "v": [value or null]}; a value holds until the next point.
Json steps_json(const PageStart& start, const Steps& steps, std::size_t most, Unit unit) {
  Json times = Json::array(), values = Json::array();
  std::int64_t before_us = 0;
  for (const auto& point : thin(steps, most)) {
    const std::int64_t time_us = start.us(point.time_ns);
    times.push_back(time_us - before_us);
    before_us = time_us;
    if (!point.value) {
      values.push_back(nullptr);
    } else if (unit == Unit::kWhole) {
      values.push_back(std::llround(*point.value));
    } else {
      values.push_back(std::round(*point.value * kPerUnit) / kPerUnit);
    }
  }
  return {{"t", std::move(times)}, {"v", std::move(values)}};
}

/// Nodes wasted (0..1 of each) between the edges of what the report tells apart.
Steps waste_of(const std::vector<NodeUsage::Piece>& pieces) {
  Steps steps;
  for (const auto& piece : pieces) {
    if (!steps.empty() && steps.back().time_ns == piece.begin_ns) steps.pop_back();
    const double time_s = static_cast<double>(piece.end_ns - piece.begin_ns) / 1e9;
    std::optional<double> rate;
    if (piece.wasted && time_s > 0) rate = *piece.wasted / time_s;
    steps.push_back({piece.begin_ns, rate});
    steps.push_back({piece.end_ns, std::nullopt});
  }
  return steps;
}

struct NodeSteps {
  Steps cpus, memory, wasted;
};

std::vector<NodeSteps> steps_of_nodes(const PageStart& start) {
  std::vector<std::vector<Steps>> cpus(start.nodes.size()), memory(start.nodes.size());
  for (const auto& run : start.timeline.runs) {
    const std::size_t node = start.node(run.node);
    cpus[node].push_back(cpus_busy(run));
    memory[node].push_back(memory_of(run));
    if (!run.lost) continue;
    // It went on, and nobody knows how.
    for (Steps* steps : {&cpus[node].back(), &memory[node].back()}) {
      if (!steps->empty()) steps->push_back({start.timeline.end_ns, std::nullopt});
    }
  }
  const auto sum = [](const std::vector<Steps>& parts) {
    std::vector<const Steps*> known;
    for (const auto& part : parts) {
      if (!part.empty()) known.push_back(&part);
    }
    return known.empty() ? Steps{} : sum_steps(known, Unknown::kHidden);
  };
  std::vector<NodeSteps> nodes(start.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].cpus = sum(cpus[i]);
    nodes[i].memory = sum(memory[i]);
  }
  if (!start.timeline.runs.empty()) {
    const NodeUsage usage(start.timeline);
    for (const auto& [node, pieces] : usage.pieces()) {
      nodes[start.node(node)].wasted = waste_of(pieces);
    }
  }
  return nodes;
}

Json set_json(const PageStart& start, const NodeSteps& steps, std::size_t most) {
  return {{"cpus", steps_json(start, steps.cpus, most, Unit::kFraction)},
          {"memory", steps_json(start, steps.memory, most, Unit::kWhole)},
          {"wasted", steps_json(start, steps.wasted, most, Unit::kFraction)}};
}

Steps sum_of(const std::vector<NodeSteps>& nodes, Steps NodeSteps::*which) {
  std::vector<const Steps*> all;
  for (const auto& node : nodes) {
    if (!(node.*which).empty()) all.push_back(&(node.*which));
  }
  return all.empty() ? Steps{} : sum_steps(all, Unknown::kLeftOut);
}

}  // namespace

Json series_json(const PageStart& start) {
  const auto nodes = steps_of_nodes(start);
  const NodeSteps sum = {sum_of(nodes, &NodeSteps::cpus), sum_of(nodes, &NodeSteps::memory),
                         sum_of(nodes, &NodeSteps::wasted)};
  // The sum gets as much as it can use; the nodes share what is left.
  constexpr std::size_t kLines = 3;
  const std::size_t most = std::min(start.limits.series_points, start.limits.points / kLines / 2);
  const std::size_t rest = start.limits.points - kLines * most;
  const std::size_t each = rest / kLines / std::max<std::size_t>(1, nodes.size());
  Json list = Json::array();
  for (const auto& node : nodes) {
    list.push_back(set_json(start, node, std::min(each, start.limits.series_points)));
  }
  return {{"sum", set_json(start, sum, most)}, {"nodes", std::move(list)}};
}

}  // namespace sphase
