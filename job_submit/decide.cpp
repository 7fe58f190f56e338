#include "job_submit/decide.h"

#include <cstring>
#include <string_view>

namespace sphase {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string_view view(const char* text) {
  return text != nullptr ? std::string_view(text) : std::string_view();
}

bool is_set(std::uint32_t value) { return value != SPHASE_UNSET; }

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// What Slurm refuses, or takes to mean something else than a size.
bool will_be_refused(const sphase_request& request) {
  const bool nodes = is_set(request.nodes_min);
  if (nodes && request.nodes_min == 0) return true;
  if (is_set(request.nodes_max) &&
      (request.nodes_max == 0 || (nodes && request.nodes_max < request.nodes_min))) {
    return true;
  }
  if (is_set(request.tasks) && request.tasks == 0) return true;
  if (request.tasks_per_node == 0 || request.cpus_per_task == 0) return true;
  return request.time_limit == 0;
}

Why whole_job(const sphase_request& request, const ScriptFacts& script) {
  if (request.traits & SPHASE_HELPER) return Why::kHelper;
  if (request.traits & SPHASE_ARRAY) return Why::kArray;
  if (request.traits & SPHASE_HET) return Why::kHet;
  if (request.traits & SPHASE_RESERVATION) return Why::kReservation;
  if (request.traits & SPHASE_GRES) return Why::kGres;
  if (will_be_refused(request)) return Why::kRefused;
  return script.explicit_sizes ? Why::kScriptSizes : Why::kNone;
}

/// One submission on its way through the rules. Order matters: tasks follow nodes, memory per CPU
/// follows CPUs.
class Decider {
 public:
  Decider(const sphase_request& request, const SiteConfig& config, const Advice& advice,
          Decision& decision, sphase_answer& answer)
      : request_(request),
        config_(config),
        advice_(advice),
        decision_(decision),
        answer_(answer),
        limits_(limits_for(config, view(request.partition), view(request.account), request.uid)) {}

  SubmitLimits& limits() { return limits_; }

  void fields() {
    nodes();
    memory_per_node();
    cpus();
    memory();
    time();
  }

 private:
  FieldResult& at(Field field) { return decision_[field]; }
  void leave(Field field, Why why) { at(field).why = why; }

  /// The field should become `to`. `consent`: the user or the site lets it be changed.
  /// True: it is changed.
  bool want(Field field, std::uint64_t to, bool consent) {
    FieldResult& result = at(field);
    // srun and salloc ask for their steps, and tell their shells, what they asked for the job.
    const bool possible = request_.batch || result.was_unset;
    result.to = to;
    result.wanted = possible;
    result.changed = possible && consent && decision_.mode == ResizeMode::kApply;
    if (!possible) {
      result.why = Why::kInteractive;
    } else if (!consent) {
      result.why = Why::kUserSet;
    }
    return result.changed;
  }

  bool is_small(std::uint64_t from, std::uint64_t to) const {
    const std::uint64_t gap = from > to ? from - to : to - from;
    return gap * 100 < from * config_.threshold_percent;
  }

  bool other_partition() const {
    return request_.partition != nullptr && advice_.head.partition[0] != '\0' &&
           std::strcmp(request_.partition, advice_.head.partition) != 0;
  }

  const AdvicePhase* first_phase() const {
    return decision_.resizable && advice_.head.phases > 0 ? &advice_.phase[0] : nullptr;
  }

  void nodes() {
    FieldResult& result = at(Field::kNodes);
    const AdvicePhase* first = first_phase();
    std::uint64_t to = first != nullptr && first->nodes != 0 ? first->nodes : advice_.head.nodes;
    if (!is_set(request_.nodes_min)) {
      result.was_unset = true;
      return leave(Field::kNodes, Why::kNotGiven);
    }
    const std::uint64_t from = is_set(request_.nodes_max) ? request_.nodes_max : request_.nodes_min;
    result.from = result.to = nodes_ = from;
    if (to == 0) return leave(Field::kNodes, Why::kUnknown);
    if (request_.traits & SPHASE_NODE_LIST) return leave(Field::kNodes, Why::kNodeList);
    if (request_.traits & SPHASE_LAYOUT) return leave(Field::kNodes, Why::kLayout);
    if (limits_.max_nodes != 0 && to > limits_.max_nodes) to = limits_.max_nodes;
    if (to < limits_.min_nodes) to = limits_.min_nodes;
    if (to >= from) return leave(Field::kNodes, Why::kFits);
    if (other_partition()) return leave(Field::kNodes, Why::kOtherPartition);
    if (is_small(from, to)) return leave(Field::kNodes, Why::kSmall);
    const std::uint64_t tasks = tasks_on(from);
    if (is_set(request_.tasks) && (request_.nodes_min != from || tasks % from != 0)) {
      return leave(Field::kNodes, Why::kUneven);
    }
    if (is_set(request_.env_tasks) && request_.env_tasks != tasks) {
      return leave(Field::kNodes, Why::kEnvironment);
    }
    if (want(Field::kNodes, to, limits_.opt_in & kOptNodes)) put_nodes(from, to);
  }

  /// Tasks of a job on so many nodes; 0 = the user left them to Slurm.
  std::uint64_t tasks_on(std::uint64_t nodes) const {
    if (is_set(request_.tasks)) return request_.tasks;
    return is_set(request_.tasks_per_node) ? request_.tasks_per_node * nodes : 0;
  }

  void put_nodes(std::uint64_t from, std::uint64_t to) {
    nodes_ = to;
    answer_.set |= SPHASE_SET_NODES;
    answer_.nodes_min = answer_.nodes_max = static_cast<std::uint32_t>(to);
    if (is_set(request_.tasks)) {
      answer_.set |= SPHASE_SET_TASKS;
      answer_.tasks = static_cast<std::uint32_t>(request_.tasks / from * to);
    }
    if (is_set(request_.env_tasks)) {
      answer_.set |= SPHASE_SET_ENV_TASKS;
      answer_.env_tasks = static_cast<std::uint32_t>(tasks_on(from) / from * to);
    }
    if (has_cpus_min()) {
      answer_.set |= SPHASE_SET_CPUS_MIN;
      answer_.cpus_min = static_cast<std::uint32_t>(ceil_div(request_.cpus_min * to, from));
    }
  }

  bool has_cpus_min() const { return is_set(request_.cpus_min) && request_.cpus_min != 0; }

  /// Tasks on each node; 0 = not known. Not changed by put_nodes().
  std::uint64_t tasks_per_node() const {
    if (is_set(request_.tasks_per_node)) return request_.tasks_per_node;
    if (!is_set(request_.tasks)) return 1;
    if (!is_set(request_.nodes_min)) return request_.tasks == 1 ? 1 : 0;
    const std::uint64_t nodes = at_const(Field::kNodes).from;
    return request_.nodes_min == nodes && request_.tasks % nodes == 0 ? request_.tasks / nodes : 0;
  }
  const FieldResult& at_const(Field field) const { return decision_[field]; }

  /// MiB that a node has to have, 0 = not known: the job's memory cannot change while it runs, so
  /// that of its hungriest phase counts.
  void memory_per_node() {
    std::uint64_t bytes = advice_.head.memory_bytes;
    if (first_phase() != nullptr && bytes != 0) {
      for (std::size_t i = 0; i < advice_.head.phases; ++i) {
        const std::uint64_t of_phase = advice_.phase[i].memory_bytes;
        if (of_phase == 0) return;  // one that is not known may need more than all others
        if (of_phase > bytes) bytes = of_phase;
      }
    }
    need_mib_ = ceil_div(bytes, kMiB);
    if (need_mib_ != 0 && need_mib_ < limits_.min_memory_mib) need_mib_ = limits_.min_memory_mib;
  }

  void cpus() {
    FieldResult& result = at(Field::kCpus);
    if (!is_set(request_.cpus_per_task)) {
      result.was_unset = true;
      return leave(Field::kCpus, Why::kNotGiven);
    }
    cpus_ = result.from = result.to = request_.cpus_per_task;
    const std::uint64_t tasks = tasks_per_node();
    if (advice_.head.cpus_per_node == 0) return leave(Field::kCpus, Why::kUnknown);
    if (request_.traits & SPHASE_LAYOUT) return leave(Field::kCpus, Why::kLayout);
    if (tasks == 0) return leave(Field::kCpus, Why::kCpusUnknown);
    if (is_set(request_.cpus_per_node_min) && request_.cpus_per_node_min % cpus_ != 0) {
      return leave(Field::kCpus, Why::kLayout);  // --mincpus of the user's own
    }
    const std::uint64_t to = ceil_div(advice_.head.cpus_per_node, tasks);
    if (to >= cpus_) return leave(Field::kCpus, Why::kFits);
    if (is_small(cpus_, to)) return leave(Field::kCpus, Why::kSmall);
    // Memory per CPU, be it the site's default, would shrink with them.
    if (request_.memory_mib == SPHASE_UNSET64 || request_.memory_per_cpu) {
      return leave(Field::kCpus, Why::kMemoryFollows);
    }
    if (want(Field::kCpus, to, limits_.opt_in & kOptCpus)) put_cpus(to);
  }

  void put_cpus(std::uint64_t to) {
    answer_.set |= SPHASE_SET_CPUS_PER_TASK;
    answer_.cpus_per_task = static_cast<std::uint32_t>(to);
    if (has_cpus_min()) {
      const std::uint64_t now =
          answer_.set & SPHASE_SET_CPUS_MIN ? answer_.cpus_min : request_.cpus_min;
      answer_.set |= SPHASE_SET_CPUS_MIN;
      answer_.cpus_min = static_cast<std::uint32_t>(ceil_div(now * to, cpus_));
    }
    if (is_set(request_.cpus_per_node_min)) {
      answer_.set |= SPHASE_SET_CPUS_PER_NODE;
      answer_.cpus_per_node_min =
          static_cast<std::uint32_t>(request_.cpus_per_node_min / cpus_ * to);
    }
    cpus_ = to;
  }

  /// `per_node` MiB in the unit of the request; 0 = cannot be said.
  std::uint64_t in_unit(std::uint64_t per_node) const {
    if (!request_.memory_per_cpu) return per_node;
    const std::uint64_t tasks = tasks_per_node();
    return tasks == 0 ? 0 : ceil_div(per_node, tasks * cpus_);
  }

  void memory() {
    FieldResult& result = at(Field::kMemory);
    result.was_unset = request_.memory_mib == SPHASE_UNSET64;
    if (!result.was_unset) result.from = result.to = request_.memory_mib;
    if (need_mib_ == 0) return leave(Field::kMemory, Why::kUnknown);
    if (!result.was_unset && request_.memory_mib == 0)
      return leave(Field::kMemory, Why::kAllMemory);
    if (limits_.max_memory_mib != 0 && need_mib_ > limits_.max_memory_mib) {
      return leave(Field::kMemory, Why::kCeiling);
    }
    const std::uint64_t to = in_unit(need_mib_);
    if (to == 0) return leave(Field::kMemory, Why::kCpusUnknown);
    const bool lower = !result.was_unset && to < result.from;
    if (!lower && other_partition()) return leave(Field::kMemory, Why::kOtherPartition);
    if (after_kill() && (lower || (result.was_unset && !default_was_killed()))) {
      return leave(Field::kMemory, Why::kAfterKill);
    }
    if (result.was_unset && first_phase() == nullptr && too_few_nodes()) {
      return leave(Field::kMemory, Why::kFewerNodes);
    }
    if (result.was_unset) return put_memory(to, true);
    if (to == result.from) return leave(Field::kMemory, Why::kFits);
    if (lower && first_phase() == nullptr && too_few_nodes()) {
      return leave(Field::kMemory, Why::kFewerNodes);
    }
    if (lower && is_small(result.from, to)) return leave(Field::kMemory, Why::kSmall);
    put_memory(to, limits_.opt_in & kOptMemory);
  }

  /// All that is known is that less was not enough.
  bool after_kill() const {
    return (advice_.head.flags & kAdviceOom) && advice_.head.nodes == 0 &&
           advice_.head.time_limit_s == 0;
  }
  bool default_was_killed() const { return advice_.head.flags & kAdviceDefaultMemory; }

  /// On fewer nodes than the advice is for, each may need more memory than was ever seen.
  bool too_few_nodes() const {
    const std::uint64_t nodes = nodes_ != 0 ? nodes_ : 1;
    return advice_.head.nodes != 0 && nodes < advice_.head.nodes;
  }

  void put_memory(std::uint64_t to, bool consent) {
    if (!want(Field::kMemory, to, consent)) return;
    answer_.set |= SPHASE_SET_MEMORY;
    answer_.memory_mib = to;
  }

  void time() {
    FieldResult& result = at(Field::kTime);
    result.was_unset = !is_set(request_.time_limit);
    if (!result.was_unset) result.from = result.to = request_.time_limit;
    std::uint64_t to = ceil_div(advice_.head.time_limit_s, 60);
    if (to == 0) return leave(Field::kTime, Why::kUnknown);
    if (to < limits_.min_time_min) to = limits_.min_time_min;
    if (limits_.max_time_min != 0 && to > limits_.max_time_min) {
      return leave(Field::kTime, Why::kCeiling);
    }
    if (!result.was_unset && to == result.from) return leave(Field::kTime, Why::kFits);
    const bool lower = !result.was_unset && to < result.from;
    if (!lower && other_partition()) return leave(Field::kTime, Why::kOtherPartition);
    if (lower && is_small(result.from, to)) return leave(Field::kTime, Why::kSmall);
    // Fewer nodes than the times were measured on make it run for longer.
    if (first_phase() == nullptr && too_few_nodes()) return leave(Field::kTime, Why::kFewerNodes);
    if (!want(Field::kTime, to, result.was_unset || (limits_.opt_in & kOptTime))) return;
    answer_.set |= SPHASE_SET_TIME;
    answer_.time_limit = static_cast<std::uint32_t>(to);
  }

  const sphase_request& request_;
  const SiteConfig& config_;
  const Advice& advice_;
  Decision& decision_;
  sphase_answer& answer_;
  SubmitLimits limits_;
  std::uint64_t nodes_ = 0, cpus_ = 1, need_mib_ = 0;
};

/// Mode and consent of the job itself; a wrong value counts as none (srun has refused it).
sphase_resize_option own_option(const sphase_request& request) {
  sphase_resize_option option{SPHASE_RESIZE_UNSET, 0, 0};
  char why[256];
  if (request.resize != nullptr) {
    (void)sphase_resize_option_parse(request.resize, &option, why, sizeof(why));
  }
  return option;
}

}  // namespace

Decision decide(const sphase_request& request, const SiteConfig& config, const ScriptFacts& script,
                AdviceState state, const Advice& advice, sphase_answer& answer) {
  Decision decision;
  Decider decider(request, config, advice, decision, answer);
  const sphase_resize_option option = own_option(request);
  SubmitLimits& limits = decider.limits();
  decision.mode = limits.mode;
  if (decision.mode != ResizeMode::kOff && option.mode != SPHASE_RESIZE_UNSET) {
    decision.mode = static_cast<ResizeMode>(option.mode);
    decision.mode_of_job = true;
    if (decision.mode == ResizeMode::kApply) limits.opt_in |= kOptNodes | kOptCpus | kOptMemory;
    if (option.time) limits.opt_in |= kOptTime;
  }
  decision.state = state;
  decision.resizable = script.resizes_itself || option.plan;
  if (decision.mode == ResizeMode::kOff) {
    decision.job = Why::kOff;
    return decision;
  }
  decision.job = whole_job(request, script);
  if (decision.job == Why::kNone && state != AdviceState::kFound) decision.job = Why::kNoAdvice;
  if (decision.job == Why::kNone) decider.fields();
  return decision;
}

}  // namespace sphase
