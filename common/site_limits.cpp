// Which limits hold for one job: limits_for() of site_config.h.
#include <string_view>

#include "common/site_config.h"
#include "common/site_text.h"

namespace sphase {
namespace {

bool same_name(const char* rule, std::string_view name) {
  return equal(rule, name.empty() ? std::string_view("(default)") : name);
}

void apply(const SubmitRule& rule, SubmitLimits& limits, bool& off) {
  const SubmitLimits& own = rule.limits;
  if (rule.given & SubmitRule::kMode) {
    limits.mode = own.mode;
    off = off || own.mode == ResizeMode::kOff;
  }
  if (rule.given & SubmitRule::kOptIn) limits.opt_in = own.opt_in;
  if (rule.given & SubmitRule::kMinNodes) limits.min_nodes = own.min_nodes;
  if (rule.given & SubmitRule::kMaxNodes) limits.max_nodes = own.max_nodes;
  if (rule.given & SubmitRule::kMinMemory) limits.min_memory_mib = own.min_memory_mib;
  if (rule.given & SubmitRule::kMaxMemory) limits.max_memory_mib = own.max_memory_mib;
  if (rule.given & SubmitRule::kMinTime) limits.min_time_min = own.min_time_min;
  if (rule.given & SubmitRule::kMaxTime) limits.max_time_min = own.max_time_min;
}

/// Calls `with` for each name of "a,b,c"; once with "" where there is none.
template <typename With>
void for_each_name(std::string_view names, With with) {
  if (names.empty()) return with(names);
  while (!names.empty()) {
    std::size_t size = 0;
    while (size < names.size() && names[size] != ',') ++size;
    with(std::string_view(names.data(), size));
    names.remove_prefix(size < names.size() ? size + 1 : size);
  }
}

}  // namespace

SubmitLimits limits_for(const SiteConfig& config, std::string_view partitions,
                        std::string_view account, std::uint32_t uid) {
  SubmitLimits limits = config.limits;
  bool off = limits.mode == ResizeMode::kOff;
  const auto with = [&](SubmitRule::Scope scope, auto matches) {
    for (std::uint32_t i = 0; i < config.rules; ++i) {
      const SubmitRule& rule = config.rule[i];
      if (rule.scope == scope && matches(rule)) apply(rule, limits, off);
    }
  };
  for_each_name(partitions, [&](std::string_view name) {
    with(SubmitRule::Scope::kPartition,
         [&](const SubmitRule& rule) { return same_name(rule.name, name); });
  });
  with(SubmitRule::Scope::kAccount,
       [&](const SubmitRule& rule) { return same_name(rule.name, account); });
  with(SubmitRule::Scope::kUid, [&](const SubmitRule& rule) { return rule.uid == uid; });
  if (off) limits.mode = ResizeMode::kOff;
  return limits;
}

}  // namespace sphase
