// Records through libslurm. The mapping of fields is what these functions say; units: Slurm's
// minutes and MiB become s and B.
#include <fcntl.h>
#include <slurm/slurm.h>
#include <slurm/slurmdb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "collector/records/job_details.h"
#include "collector/records/records.h"

namespace sphase {
namespace {

constexpr std::int64_t kDayS = 86400;

Maybe number(std::uint32_t value) {
  if (value == NO_VAL || value == INFINITE) return std::nullopt;
  return value;
}
Maybe positive(std::uint32_t value) {
  const Maybe known = number(value);
  return known && *known > 0 ? known : std::nullopt;
}
Maybe time_of(time_t value) { return value > 0 ? Maybe(value) : std::nullopt; }
MaybeText text(const char* value) {
  return value != nullptr && *value != '\0' ? MaybeText(value) : std::nullopt;
}
std::string plain(const char* value) { return value != nullptr ? value : ""; }

Maybe seconds_of(std::uint32_t minutes) {
  const Maybe known = number(minutes);
  return known ? Maybe(*known * 60) : std::nullopt;
}

/// libslurm writes its own errors to stderr; ours are one line.
class QuietStderr {
 public:
  QuietStderr() : saved_(::dup(STDERR_FILENO)) {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0) return;
    ::dup2(null, STDERR_FILENO);
    ::close(null);
  }
  QuietStderr(const QuietStderr&) = delete;
  QuietStderr& operator=(const QuietStderr&) = delete;
  ~QuietStderr() {
    if (saved_ < 0) return;
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

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
  }
  if (job.het_job_id != 0) {
    facts.het_job_id = job.het_job_id;
    facts.het_offset = number(job.het_job_offset);
  }
  facts.account = text(job.account);
  facts.partition = text(job.partition);
  facts.admin_comment = text(job.admin_comment);
}

JobRow row_of(slurm_job_info_t& job, const std::string& cluster) {
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
  const JobDetails details = job_details(job);
  facts.state_reason = details.reason;
  facts.submit_s = time_of(job.submit_time);
  facts.eligible_s = time_of(job.eligible_time);
  const std::uint32_t base = job.job_state & JOB_STATE_BASE;
  const bool started = base != JOB_PENDING;
  // While it waits, and while it runs, these two are what the scheduler expects.
  if (started) facts.start_s = time_of(job.start_time);
  if (base > JOB_SUSPENDED) {
    facts.end_s = time_of(job.end_time);
    facts.exit_code = job.exit_code;
  }
  facts.time_limit_s = seconds_of(job.time_limit);
  facts.requested_nodes = positive(job.num_nodes);
  facts.requested_cpus = positive(job.num_cpus);
  facts.requested_memory = requested_memory(job.pn_min_memory);
  row.restarts = job.restart_cnt;
  row.resize_s = time_of(job.resize_time);
  if (started) {
    set_resources(row, job.nodes, job.tres_alloc_str);
    set_each_node(row, job, details);
  }
  return row;
}

JobRow row_of(const slurmdb_job_rec_t& job) {
  JobRow row;
  JobFacts& facts = row.facts;
  facts.cluster = plain(job.cluster);
  facts.job_id = job.jobid;
  set_shared(facts, job);
  facts.uid = number(job.uid);
  facts.user = text(job.user);
  facts.name = text(job.jobname);
  facts.state = state_word(job.state);
  facts.submit_s = time_of(job.submit);
  facts.eligible_s = time_of(job.eligible);
  facts.start_s = time_of(job.start);
  facts.end_s = time_of(job.end);
  if (facts.end_s) facts.exit_code = job.exitcode;
  facts.time_limit_s = seconds_of(job.timelimit);
  facts.suspended_s = number(job.suspended);
  const std::string requested = tres_in_words(plain(job.tres_req_str));
  facts.requested_nodes = tres_count(requested, "node");
  facts.requested_cpus = positive(job.req_cpus);
  facts.requested_memory = requested_memory(job.req_mem);
  if (!facts.requested_memory) {
    if (const Maybe bytes = tres_count(requested, "mem")) {
      facts.requested_memory = std::to_string(*bytes >> 20) + "M";
    }
  }
  set_resources(row, job.nodes, job.tres_alloc_str);
  return row;
}

Error slurm_error(const char* what) {
  return Error{std::string(what) + ": " + slurm_strerror(errno)};
}

class SlurmRecords : public RecordSource {
 public:
  SlurmRecords() { slurm_init(nullptr); }
  SlurmRecords(const SlurmRecords&) = delete;
  SlurmRecords& operator=(const SlurmRecords&) = delete;
  ~SlurmRecords() override { slurm_fini(); }

  Result<std::vector<JobRow>> from_slurmctld(const RecordQuery& query) override;
  Result<std::vector<JobRow>> from_slurmdbd(const RecordQuery& query) override;
  Result<std::vector<PartitionRow>> partitions() override;

 private:
  Status load_conf();

  std::string cluster_;                   // ClusterName
  std::string accounting_ = "not known";  // AccountingStorageType
};

Status SlurmRecords::load_conf() {
  slurm_conf_t* conf = nullptr;
  if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
    return slurm_error("slurmctld could not be asked");
  }
  cluster_ = plain(conf->cluster_name);
  accounting_ = plain(conf->accounting_storage_type);
  slurm_free_ctl_conf(conf);
  return Done{};
}

Result<std::vector<JobRow>> SlurmRecords::from_slurmctld(const RecordQuery& query) {
  const QuietStderr quiet;
  if (auto loaded = load_conf(); !loaded) return Error{loaded.error()};
  job_info_msg_t* jobs = nullptr;
  if (slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS) {
    return slurm_error("slurmctld could not be asked");
  }
  const std::set<std::int64_t> wanted(query.job_ids.begin(), query.job_ids.end());
  std::vector<JobRow> rows;
  for (std::uint32_t i = 0; i < jobs->record_count; ++i) {
    slurm_job_info_t& job = jobs->job_array[i];
    if (wanted.contains(job.job_id)) rows.push_back(row_of(job, cluster_));
  }
  slurm_free_job_info_msg(jobs);
  return rows;
}

/// A condition that owns its lists.
class JobCondition {
 public:
  explicit JobCondition(const RecordQuery& query) {
    cond_.cluster_list = slurm_list_create(std::free);
    for (const auto& name : query.clusters) {
      slurm_list_append(cond_.cluster_list, ::strdup(name.c_str()));
    }
    cond_.step_list = slurm_list_create(std::free);
    for (const auto id : query.job_ids) add_job(static_cast<std::uint32_t>(id));
    cond_.flags = JOBCOND_FLAG_DUP | JOBCOND_FLAG_NO_STEP | JOBCOND_FLAG_NO_TRUNC;
    cond_.db_flags = SLURMDB_JOB_FLAG_NOTSET;  // 0 would mean: only jobs without any flag
    cond_.usage_start = query.since_s;
    // A requeued job becomes eligible in some minutes.
    cond_.usage_end = ::time(nullptr) + kDayS;
  }
  JobCondition(const JobCondition&) = delete;
  JobCondition& operator=(const JobCondition&) = delete;
  ~JobCondition() {
    slurm_list_destroy(cond_.cluster_list);
    slurm_list_destroy(cond_.step_list);
  }
  slurmdb_job_cond_t* get() { return &cond_; }

 private:
  void add_job(std::uint32_t id) {
    auto* step = static_cast<slurm_selected_step_t*>(std::calloc(1, sizeof(slurm_selected_step_t)));
    if (step == nullptr) return;
    step->array_task_id = NO_VAL;
    step->het_job_offset = NO_VAL;
    step->step_id.job_id = id;
    step->step_id.step_id = NO_VAL;
    step->step_id.step_het_comp = NO_VAL;
    slurm_list_append(cond_.step_list, step);
  }

  slurmdb_job_cond_t cond_{};
};

bool keeps_accounts(const std::string& type) {
  return !type.empty() && type != "(null)" && type != "accounting_storage/none";
}

Result<std::vector<JobRow>> SlurmRecords::from_slurmdbd(const RecordQuery& query) {
  if (!keeps_accounts(accounting_)) return std::vector<JobRow>();
  const QuietStderr quiet;
  errno = 0;
  void* connection = slurmdb_connection_get(nullptr);
  JobCondition condition(query);
  auto jobs = connection != nullptr ? slurmdb_jobs_get(connection, condition.get()) : nullptr;
  if (jobs == nullptr) {
    // No answer and no error: this host's slurm.conf names no slurmdbd.
    const bool none = errno == 0;
    const Error error = slurm_error("slurmdbd could not be asked");
    if (connection != nullptr) slurmdb_connection_close(&connection);
    if (none) return std::vector<JobRow>();
    return error;
  }
  std::vector<JobRow> rows;
  auto each = slurm_list_iterator_create(jobs);
  while (const void* job = slurm_list_next(each)) {
    rows.push_back(row_of(*static_cast<const slurmdb_job_rec_t*>(job)));
  }
  slurm_list_iterator_destroy(each);
  slurm_list_destroy(jobs);
  slurmdb_connection_close(&connection);
  return rows;
}

using Nodes = std::map<std::string, const node_info_t*>;

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

Result<std::vector<PartitionRow>> SlurmRecords::partitions() {
  const QuietStderr quiet;
  if (cluster_.empty()) {
    if (auto loaded = load_conf(); !loaded) return Error{loaded.error()};
  }
  node_info_msg_t* all = nullptr;
  if (slurm_load_node(0, &all, SHOW_ALL) != SLURM_SUCCESS) {
    return slurm_error("slurmctld could not be asked for its nodes");
  }
  partition_info_msg_t* parts = nullptr;
  if (slurm_load_partitions(0, &parts, SHOW_ALL) != SLURM_SUCCESS) {
    const Error error = slurm_error("slurmctld could not be asked for its partitions");
    slurm_free_node_info_msg(all);
    return error;
  }
  Nodes nodes;
  for (std::uint32_t i = 0; i < all->record_count; ++i) {
    const node_info_t& node = all->node_array[i];
    if (node.name != nullptr) nodes[node.name] = &node;
  }
  std::vector<PartitionRow> rows;
  for (std::uint32_t i = 0; i < parts->record_count; ++i) {
    rows.push_back(row_of(parts->partition_array[i], cluster_, nodes));
  }
  slurm_free_partition_info_msg(parts);
  slurm_free_node_info_msg(all);
  return rows;
}

}  // namespace

std::unique_ptr<RecordSource> slurm_records() { return std::make_unique<SlurmRecords>(); }

}  // namespace sphase
