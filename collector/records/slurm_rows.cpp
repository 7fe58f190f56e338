#include "collector/records/slurm_rows.h"

#include <algorithm>
#include <cstdlib>

#include "collector/records/job_details.h"
#include "collector/records/records_words.h"

namespace sphase {
namespace {

Maybe number(std::uint32_t value) {
  if (value == NO_VAL || value == INFINITE) return std::nullopt;
  return value;
}
Maybe positive(std::uint32_t value) {
  const Maybe known = number(value);
  return known && *known > 0 ? known : std::nullopt;
}
/// slurmdbd has NO_VAL where a job that was held never became eligible, or never started.
Maybe time_of(time_t value) {
  const bool known = value > 0 && value != time_t{NO_VAL} && value != time_t{INFINITE};
  return known ? Maybe(value) : std::nullopt;
}
MaybeText text(const char* value) {
  return value != nullptr && *value != '\0' ? MaybeText(value) : std::nullopt;
}

Maybe seconds_of(std::uint32_t minutes) {
  const Maybe known = number(minutes);
  return known ? Maybe(*known * 60) : std::nullopt;
}

/// Names of a host list expression, e.g. "n[1-3]".
std::vector<std::string> expand(const std::string& expression) {
  std::vector<std::string> names;
  const auto list = slurm_hostlist_create(expression.c_str());
  if (list == nullptr) return names;
  while (char* name = slurm_hostlist_shift(list)) {
    names.emplace_back(name);
    std::free(name);  // NOLINT: slurm_hostlist_shift allocates with malloc
  }
  slurm_hostlist_destroy(list);
  return names;
}

void set_resources(JobRow& row, const char* nodes, const char* tres) {
  row.nodes = plain(nodes);
  if (row.nodes == "None assigned" || row.nodes == "(null)") row.nodes.clear();
  row.tres = tres_in_words(plain(tres));
  row.node_count = tres_count(row.tres, "node");
  row.cpus = tres_count(row.tres, "cpu");
  row.memory_bytes = tres_count(row.tres, "mem");
  for (auto& name : expand(row.nodes)) row.each_node.push_back({std::move(name), {}, {}});
  if (!row.node_count && !row.each_node.empty()) {
    row.node_count = static_cast<std::int64_t>(row.each_node.size());
  }
}

/// CPUs and memory of each node: only slurmctld knows them, and only while it holds the job.
void set_each_node(JobRow& row, const slurm_job_info_t& job, const JobDetails& details) {
  std::map<std::string, std::int64_t> memory;
  for (const auto& [nodes, bytes] : details.node_memory) {
    for (const auto& name : expand(nodes)) memory[name] = bytes;
  }
  for (auto& node : row.each_node) {
    node.cpus = cpus_on_node(job, node.node);
    if (const auto found = memory.find(node.node); found != memory.end()) {
      node.memory_bytes = found->second;
    }
  }
}

/// What slurmctld's and slurmdbd's structures call by the same names.
template <typename Job>
void set_shared(JobFacts& facts, const Job& job) {
  if (job.array_job_id != 0) {
    facts.array_job_id = job.array_job_id;
    facts.array_task_id = number(job.array_task_id);
    // Of tasks that started, slurmdbd may keep what was left when they were split off.
    if (!facts.array_task_id) facts.array_tasks = text(job.array_task_str);
  }
  if (job.het_job_id != 0) {
    facts.het_job_id = job.het_job_id;
    facts.het_offset = number(job.het_job_offset);
  }
  facts.account = text(job.account);
  facts.partition = text(job.partition);
  facts.admin_comment = text(job.admin_comment);
}

/// What was asked for, as far as it still stands: num_nodes and num_cpus are what it got once it
/// runs, and the most that it may get while it waits ("-N2-3"). Before a resize tres_req_str is
/// what was asked for; a resize overwrites its nodes.
void set_request(JobRow& row, const slurm_job_info_t& job) {
  JobFacts& facts = row.facts;
  const std::string requested = plain(job.tres_req_str);
  facts.requested_nodes = tres_count(requested, "node");
  if (row.resize_s) {
    facts.requested_nodes.reset();
  } else if (!facts.requested_nodes) {
    facts.requested_nodes = positive(job.num_nodes);
  }
  facts.requested_cpus = tres_count(requested, "cpu");
  facts.requested_memory = requested_memory(job.pn_min_memory);
  facts.time_limit_s = facts.requested_time_limit_s = seconds_of(job.time_limit);
}

/// slurmctld keeps the sum to itself: it is what the job did not run from its start to the last
/// time that it was suspended or went on.
void set_suspended(JobRow& row, const slurm_job_info_t& job, std::int64_t now_s) {
  JobFacts& facts = row.facts;
  if (!facts.start_s) return;
  facts.suspended_s = 0;
  row.suspend_s = time_of(job.suspend_time);
  if (!row.suspend_s) return;
  row.ran_s = job.pre_sus_time;
  const bool still = (job.job_state & JOB_STATE_BASE) == JOB_SUSPENDED;
  const std::int64_t over_s = *row.suspend_s - *facts.start_s - *row.ran_s;
  facts.suspended_s = std::max<std::int64_t>(0, over_s) +
                      (still ? std::max<std::int64_t>(0, now_s - *row.suspend_s) : 0);
}

/// While it waits, and while it runs, start and end are what the scheduler expects.
void set_times(JobRow& row, const slurm_job_info_t& job) {
  JobFacts& facts = row.facts;
  facts.submit_s = time_of(job.submit_time);
  facts.eligible_s = time_of(job.eligible_time);
  row.resize_s = time_of(job.resize_time);
  const std::uint32_t base = job.job_state & JOB_STATE_BASE;
  if (base != JOB_PENDING) facts.start_s = time_of(job.start_time);
  if (base <= JOB_SUSPENDED) return;
  facts.end_s = time_of(job.end_time);
  facts.exit_code = job.exit_code;
  // See records.h for both.
  if (row.gave_away) facts.end_s = row.resize_s;
  const bool held_nothing = plain(job.nodes).empty() && !row.gave_away;
  if (held_nothing && facts.start_s == facts.end_s) facts.start_s.reset();
}

}  // namespace

std::string plain(const char* value) { return value != nullptr ? value : ""; }

bool gave_away(const slurm_job_info_t& job) {
  return (job.job_state & JOB_STATE_BASE) == JOB_COMPLETE && job.resize_time > 0 &&
         plain(job.nodes).empty();
}

JobRow row_of(slurm_job_info_t& job, const std::string& cluster, std::int64_t now_s) {
  JobRow row;
  JobFacts& facts = row.facts;
  facts.cluster = job.cluster != nullptr ? job.cluster : cluster;
  facts.job_id = job.job_id;
  set_shared(facts, job);
  facts.uid = job.user_id;
  facts.user = text(job.user_name);
  facts.name = text(job.name);
  facts.qos = text(job.qos);
  facts.state = state_word(job.job_state);
  facts.helper_of = expanded_job(plain(job.dependency));
  row.restarts = job.restart_cnt;
  row.gave_away = gave_away(job);
  set_times(row, job);
  set_request(row, job);
  set_suspended(row, job, now_s);
  // Last: slurm_print_job_info takes the MEM_PER_CPU bit off pn_min_memory (22.05).
  const JobDetails details = job_details(job);
  facts.state_reason = details.reason;
  if (facts.start_s) {
    set_resources(row, job.nodes, job.tres_alloc_str);
    set_each_node(row, job, details);
  }
  return row;
}

JobRow row_of(const slurmdb_job_rec_t& job, const QosNames& qos) {
  JobRow row;
  JobFacts& facts = row.facts;
  facts.cluster = plain(job.cluster);
  facts.job_id = job.jobid;
  set_shared(facts, job);
  facts.uid = number(job.uid);
  facts.user = text(job.user);
  facts.name = text(job.jobname);
  if (const auto found = qos.find(job.qosid); found != qos.end()) facts.qos = found->second;
  facts.state = state_word(job.state);
  facts.helper_of = expanded_by_command(plain(job.submit_line));
  facts.submit_s = time_of(job.submit);
  facts.eligible_s = time_of(job.eligible);
  facts.start_s = time_of(job.start);
  facts.end_s = time_of(job.end);
  set_resources(row, job.nodes, job.tres_alloc_str);
  if (facts.start_s == facts.end_s && row.nodes.empty()) facts.start_s.reset();  // never started
  // The last row of a helper that gave its nodes away: see records.h.
  if (!facts.end_s && is_over(facts.state) && row.nodes.empty()) facts.end_s = facts.submit_s;
  if (facts.end_s) facts.exit_code = job.exitcode;
  facts.time_limit_s = facts.requested_time_limit_s = seconds_of(job.timelimit);
  facts.suspended_s = number(job.suspended);
  const std::string requested = tres_in_words(plain(job.tres_req_str));
  facts.requested_nodes = tres_count(requested, "node");
  facts.requested_cpus = tres_count(requested, "cpu");
  if (!facts.requested_cpus) facts.requested_cpus = positive(job.req_cpus);
  facts.requested_memory = requested_memory(job.req_mem);
  if (!facts.requested_memory) {
    if (const Maybe bytes = tres_count(requested, "mem")) {
      facts.requested_memory = std::to_string(*bytes >> 20) + "M";
    }
  }
  return row;
}

namespace {

/// The largest request for one node of the partition that one of its nodes can hold.
void set_node_limits(PartitionRow& row, const partition_info_t& part, const Nodes& nodes) {
  std::int64_t memory_mib = 0, cpus = 0;
  for (const auto& name : expand(plain(part.nodes))) {
    const auto found = nodes.find(name);
    if (found == nodes.end()) continue;
    const node_info_t& node = *found->second;
    // MemSpecLimit is for Slurm's own daemons; it may carry NO_VAL64.
    const bool spec = node.mem_spec_limit < node.real_memory;
    const std::uint64_t usable = node.real_memory - (spec ? node.mem_spec_limit : 0);
    const auto most = node_memory_mib(usable, node.cpus, part.max_mem_per_cpu);
    memory_mib = std::max(memory_mib, static_cast<std::int64_t>(most));
    cpus = std::max<std::int64_t>(cpus, node.cpus);
  }
  if (const Maybe most = positive(part.max_cpus_per_node)) cpus = std::min(cpus, *most);
  if (memory_mib > 0) row.memory_most_bytes = memory_mib << 20;
  if (cpus > 0) row.cpus_most = cpus;
}

}  // namespace

PartitionRow row_of(const partition_info_t& part, const std::string& cluster, const Nodes& nodes) {
  PartitionRow row;
  row.cluster = part.cluster_name != nullptr ? part.cluster_name : cluster;
  row.name = plain(part.name);
  row.nodes_least = positive(part.min_nodes);
  row.nodes_most = positive(part.max_nodes);
  if (const Maybe total = positive(part.total_nodes)) {
    row.nodes_most = std::min(row.nodes_most.value_or(*total), *total);
  }
  row.time_most_s = seconds_of(part.max_time);
  set_node_limits(row, part, nodes);
  return row;
}

}  // namespace sphase
