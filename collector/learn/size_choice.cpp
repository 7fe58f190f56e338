#include "collector/learn/size_choice.h"

#include <algorithm>

namespace sphase {
namespace {

constexpr std::int64_t kSizesMost = 1024;
constexpr double kSameTime = 1.02;
constexpr double kRounding = 1 + 1e-9;

double cost(const SizeChoice& choice) {
  return static_cast<double>(choice.nodes) * choice.time.expected;
}

/// The first choice whose `price` is within `slack` of the least.
template <typename Price>
SizeChoice cheapest(const std::vector<SizeChoice>& choices, Price price, double slack) {
  double least = price(choices.front());
  for (const auto& choice : choices) least = std::min(least, price(choice));
  const auto cheap = [&](const SizeChoice& choice) { return price(choice) <= least * slack; };
  return *std::find_if(choices.begin(), choices.end(), cheap);
}

SizeChoice largest_efficient(const std::vector<SizeChoice>& choices, double least) {
  const auto efficient = [&](const SizeChoice& choice) {
    return choice.efficiency * kRounding >= least;
  };
  const auto found = std::find_if(choices.rbegin(), choices.rend(), efficient);
  return found != choices.rend() ? *found : choices.front();
}

}  // namespace

std::vector<std::int64_t> sizes_between(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  if (least > most) return sizes;
  const std::int64_t range = most - least;
  const std::int64_t steps = std::min(range, kSizesMost - 1);
  for (std::int64_t i = 0; i < steps; ++i) sizes.push_back(least + range * i / steps);
  sizes.push_back(most);
  return sizes;
}

std::vector<SizeChoice> choices_at(const TimeModel& model, const std::vector<std::int64_t>& sizes) {
  std::vector<SizeChoice> choices;
  const double alone = model.at(1).expected;
  for (const std::int64_t nodes : sizes) {
    SizeChoice choice{nodes, model.at(static_cast<double>(nodes)), 0};
    if (model.has_shape()) choice.efficiency = alone / cost(choice);
    choices.push_back(choice);
  }
  return choices;
}

SizeChoice best_of(const std::vector<SizeChoice>& choices, const Policy& policy) {
  switch (policy.kind) {
    case PolicyKind::kMinTime:
      return cheapest(
          choices, [](const SizeChoice& c) { return c.time.expected; }, kSameTime);
    case PolicyKind::kMinCost:
      return cheapest(choices, cost, kRounding);
    case PolicyKind::kEfficiency:
      break;
  }
  // A policy is held as float: 0.7F is a little more than 0.7.
  return largest_efficient(choices, static_cast<double>(policy.efficiency_least) - 1e-7);
}

}  // namespace sphase
