// Records through libslurm: see slurm_rows.h for the mapping of fields.
#include <slurm/slurm.h>
#include <slurm/slurmdb.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>

#include "collector/records/load_since.h"
#include "collector/records/own_stderr.h"
#include "collector/records/record_source.h"
#include "collector/records/records_words.h"
#include "collector/records/slurm_rows.h"

namespace sphase {
namespace {

constexpr std::int64_t kDayS = 86400;

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
  std::vector<std::string> hidden() override;

 private:
  Status load_conf();
  Result<std::vector<JobRow>> ask_slurmctld(const RecordQuery& query);
  Result<std::vector<JobRow>> ask_slurmdbd(const RecordQuery& query);
  Result<std::vector<PartitionRow>> ask_partitions();
  void name_qos(void* connection, const std::vector<const slurmdb_job_rec_t*>& jobs);

  std::string cluster_;                   // ClusterName; "": not known yet
  std::string accounting_ = "not known";  // AccountingStorageType
  bool jobs_hidden_ = false;              // from us, by PrivateData
  LoadSince since_;
  QosNames qos_;
};

/// Asked once, and again after slurmctld was away: it may have come back as another one.
Status SlurmRecords::load_conf() {
  if (!cluster_.empty()) return Done{};
  slurm_conf_t* conf = nullptr;
  if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
    return slurm_error("slurmctld could not be asked");
  }
  cluster_ = plain(conf->cluster_name);
  accounting_ = plain(conf->accounting_storage_type);
  const bool sees_all = ::geteuid() == 0 || ::geteuid() == conf->slurm_user_id;
  jobs_hidden_ = (conf->private_data & PRIVATE_DATA_JOBS) != 0 && !sees_all;
  slurm_free_ctl_conf(conf);
  return Done{};
}

std::vector<std::string> SlurmRecords::hidden() {
  if (!jobs_hidden_) return {};
  return {
      "PrivateData=jobs: records of other users' jobs are shown to root, SlurmUser and operators"
      " alone; what is not shown to user " +
      std::to_string(::geteuid()) + " is missing"};
}

/// Cheap, before a row is made of it.
bool is_wanted(const slurm_job_info_t& job, const RecordQuery& query,
               const std::set<std::int64_t>& ids) {
  if (query.every_job || ids.contains(job.job_id) || gave_away(job)) return true;
  const Maybe parent = expanded_job(plain(job.dependency));
  return parent && ids.contains(*parent);
}

Result<std::vector<JobRow>> SlurmRecords::ask_slurmctld(const RecordQuery& query) {
  if (auto loaded = load_conf(); !loaded) return Error{loaded.error()};
  const std::set<std::int64_t> ids(query.job_ids.begin(), query.job_ids.end());
  const auto since = since_.time_for(query.job_ids, query.every_job);
  job_info_msg_t* jobs = nullptr;
  if (slurm_load_jobs(since, &jobs, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS) {
    if (errno == SLURM_NO_CHANGE_IN_DATA) return std::vector<JobRow>();
    return slurm_error("slurmctld could not be asked");
  }
  const std::int64_t now_s = ::time(nullptr);
  std::vector<JobRow> rows;
  for (std::uint32_t i = 0; i < jobs->record_count; ++i) {
    slurm_job_info_t& job = jobs->job_array[i];
    if (is_wanted(job, query, ids)) rows.push_back(row_of(job, cluster_, now_s));
  }
  since_.answered(jobs->last_update, query.job_ids, query.every_job);
  slurm_free_job_info_msg(jobs);
  return rows;
}

Result<std::vector<JobRow>> SlurmRecords::from_slurmctld(const RecordQuery& query) {
  Result<std::vector<JobRow>> rows = Error{"not asked"};
  without_stderr([&] { rows = ask_slurmctld(query); });
  if (!rows) {
    cluster_.clear();
    since_.forget();
  }
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

using KeptJobs = std::vector<const slurmdb_job_rec_t*>;

/// The list's own type has other names in later releases.
template <typename JobList>
KeptJobs list_of(JobList* jobs) {
  KeptJobs rows;
  auto each = slurm_list_iterator_create(jobs);
  while (const void* job = slurm_list_next(each)) {
    rows.push_back(static_cast<const slurmdb_job_rec_t*>(job));
  }
  slurm_list_iterator_destroy(each);
  return rows;
}

/// slurmdbd keeps the number of a quality of service. Asked when a number is new.
void SlurmRecords::name_qos(void* connection, const KeptJobs& jobs) {
  bool unknown = false;
  for (const auto* job : jobs) unknown = unknown || !qos_.contains(job->qosid);
  if (!unknown) return;
  slurmdb_qos_cond_t condition{};
  const auto all = slurmdb_qos_get(connection, &condition);
  if (all == nullptr) return;
  auto each = slurm_list_iterator_create(all);
  while (const void* found = slurm_list_next(each)) {
    const auto* qos = static_cast<const slurmdb_qos_rec_t*>(found);
    qos_[qos->id] = plain(qos->name);
  }
  slurm_list_iterator_destroy(each);
  slurm_list_destroy(all);
  for (const auto* job : jobs) qos_.try_emplace(job->qosid);  // not asked for again
}

Result<std::vector<JobRow>> SlurmRecords::ask_slurmdbd(const RecordQuery& query) {
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
  const KeptJobs found = list_of(jobs);
  name_qos(connection, found);
  std::vector<JobRow> rows;
  for (const auto* job : found) rows.push_back(row_of(*job, qos_));
  slurm_list_destroy(jobs);
  slurmdb_connection_close(&connection);
  return rows;
}

Result<std::vector<JobRow>> SlurmRecords::from_slurmdbd(const RecordQuery& query) {
  if (!keeps_accounts(accounting_)) return std::vector<JobRow>();
  Result<std::vector<JobRow>> rows = Error{"not asked"};
  without_stderr([&] { rows = ask_slurmdbd(query); });
  return rows;
}

Result<std::vector<PartitionRow>> SlurmRecords::partitions() {
  Result<std::vector<PartitionRow>> rows = Error{"not asked"};
  without_stderr([&] { rows = ask_partitions(); });
  return rows;
}

Result<std::vector<PartitionRow>> SlurmRecords::ask_partitions() {
  if (auto loaded = load_conf(); !loaded) return Error{loaded.error()};
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
