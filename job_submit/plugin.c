/* job_submit/phase_resize: runs inside slurmctld, at every submission, with slurmctld's locks held.
 * This file is the ABI and the only one that knows job_desc_msg_t: it copies a job into a
 * struct sphase_request, and what came of it back.
 *
 * Rules of the house for everything below job_submit/:
 *   - a job is never refused: every hook returns SLURM_SUCCESS, and init never fails (a job_submit
 *     plugin that does not load is fatal to slurmctld);
 *   - no RPC, no lock, no thread, no heap of our own, no library but libc (tinycdb is linked in);
 *   - what Slurm will free comes from Slurm's allocator.
 *
 * In C, as all of Slurm's plugins: the C++ behind it neither throws nor needs a C++ runtime.
 */
#include <inttypes.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/resize_option.h"
#include "job_submit/request.h"
#include "job_submit/slurm_symbols.h"

const char plugin_name[] = "sphase: learned requests at submission";
const char plugin_type[] = "job_submit/phase_resize";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static void log_line(const char* line) { slurm_info("%s", line); }

int init(void) {
  sphase_submit_start(NULL, log_line);
  return SLURM_SUCCESS;
}

int fini(void) { return SLURM_SUCCESS; }

/* --- from Slurm --------------------------------------------------------------------------- */

static uint32_t from_32(uint32_t value) {
  if (value == NO_VAL) return SPHASE_UNSET;
  return value == INFINITE ? SPHASE_UNSET - 1 : value;
}

static uint32_t from_16(uint16_t value) { return value == NO_VAL16 ? SPHASE_UNSET : value; }

static int is_set_16(uint16_t value) { return value != NO_VAL16 && value != 0; }

static int is_given(const char* text) { return text != NULL && text[0] != '\0'; }

/* The value of NAME= in an array of `count` entries, any of which may be NULL. */
static const char* find_value(char* const* entries, uint32_t count, const char* name) {
  const size_t size = strlen(name);
  for (uint32_t i = 0; entries != NULL && i < count; ++i) {
    const char* entry = entries[i];
    if (entry != NULL && strncmp(entry, name, size) == 0 && entry[size] == '=') {
      return entry + size + 1;
    }
  }
  return NULL;
}

/* The variables of a batch job that concern us, found in one pass: an environment may hold
 * thousands, each of them a cache miss. */
enum variable { kExplain, kNTasks, kNProcs, kPlan, kVariables };
static const char* const kNames[kVariables] = {"SPHASE_EXPLAIN", "SLURM_NTASKS", "SLURM_NPROCS",
                                               "SPHASE_PLAN"};
struct environment {
  char* value[kVariables]; /* NULL: not there */
};

static void read_environment(const job_desc_msg_t* job, struct environment* found) {
  memset(found, 0, sizeof(*found));
  for (uint32_t i = 0; job->environment != NULL && i < job->env_size; ++i) {
    char* entry = job->environment[i];
    if (entry == NULL || entry[0] != 'S') continue;
    for (int v = 0; v < kVariables; ++v) {
      const size_t size = strlen(kNames[v]);
      if (found->value[v] == NULL && strncmp(entry, kNames[v], size) == 0 && entry[size] == '=') {
        found->value[v] = entry + size + 1;
      }
    }
  }
}

/* A number in an environment; SPHASE_UNSET where there is none, 0 where it is something else. */
static uint32_t number_of(const char* text) {
  char* end = NULL;
  if (text == NULL) return SPHASE_UNSET;
  const unsigned long value = strtoul(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && value < SPHASE_UNSET ? (uint32_t)value
                                                                                  : 0;
}

static unsigned traits_of(const job_desc_msg_t* job) {
  unsigned traits = 0;
  if (is_given(job->array_inx)) traits |= SPHASE_ARRAY;
  if (job->het_job_offset != NO_VAL) traits |= SPHASE_HET;
  if (is_given(job->reservation)) traits |= SPHASE_RESERVATION;
  if (is_given(job->tres_per_job) || is_given(job->tres_per_node) ||
      is_given(job->tres_per_socket) || is_given(job->tres_per_task) ||
      is_given(job->cpus_per_tres) || is_given(job->mem_per_tres)) {
    traits |= SPHASE_GRES;
  }
  if (is_given(job->req_nodes)) traits |= SPHASE_NODE_LIST;
  if (job->dependency != NULL && strstr(job->dependency, "expand:") != NULL) {
    traits |= SPHASE_HELPER;
  }
  if (is_set_16(job->ntasks_per_socket) || is_set_16(job->ntasks_per_core) ||
      is_set_16(job->ntasks_per_board) || is_set_16(job->sockets_per_node) ||
      is_set_16(job->cores_per_socket) || is_set_16(job->threads_per_core) ||
      is_set_16(job->plane_size)) {
    traits |= SPHASE_LAYOUT;
  }
  return traits;
}

static void read_job(const job_desc_msg_t* job, const struct environment* environment,
                     struct sphase_request* request) {
  memset(request, 0, sizeof(*request));
  request->uid = job->user_id;
  request->name = job->name;
  request->partition = job->partition;
  request->account = job->account;
  request->script = job->script;
  request->resize = find_value(job->spank_job_env, job->spank_job_env_size, SPHASE_RESIZE_ENV);
  request->telemetry =
      find_value(job->spank_job_env, job->spank_job_env_size, SPHASE_TELEMETRY_ENV);
  request->traits = traits_of(job);
  request->batch = job->script != NULL;
  request->explain = environment->value[kExplain] != NULL;
  request->nodes_min = from_32(job->min_nodes);
  request->nodes_max = from_32(job->max_nodes);
  request->tasks = from_32(job->num_tasks);
  request->tasks_per_node = from_16(job->ntasks_per_node);
  request->cpus_per_task = from_16(job->cpus_per_task);
  request->cpus_min = from_32(job->min_cpus);
  request->env_tasks = number_of(environment->value[kNTasks]);
  request->cpus_per_node_min = from_16(job->pn_min_cpus);
  request->time_limit = from_32(job->time_limit);
  request->memory_mib = SPHASE_UNSET64;
  if (job->pn_min_memory != NO_VAL64) {
    request->memory_per_cpu = (job->pn_min_memory & MEM_PER_CPU) != 0;
    request->memory_mib = job->pn_min_memory & ~MEM_PER_CPU;
  }
}

/* --- to Slurm ----------------------------------------------------------------------------- */

static void write_numbers(const struct sphase_request* request, const struct sphase_answer* answer,
                          job_desc_msg_t* job) {
  if (answer->set & SPHASE_SET_NODES) {
    job->min_nodes = answer->nodes_min;
    job->max_nodes = answer->nodes_max;
  }
  if (answer->set & SPHASE_SET_TASKS) job->num_tasks = answer->tasks;
  if (answer->set & SPHASE_SET_CPUS_MIN) job->min_cpus = answer->cpus_min;
  if (answer->set & SPHASE_SET_CPUS_PER_TASK) job->cpus_per_task = (uint16_t)answer->cpus_per_task;
  if (answer->set & SPHASE_SET_CPUS_PER_NODE) {
    job->pn_min_cpus = (uint16_t)answer->cpus_per_node_min;
  }
  if (answer->set & SPHASE_SET_MEMORY) {
    job->pn_min_memory = answer->memory_mib | (request->memory_per_cpu ? MEM_PER_CPU : 0);
  }
  if (answer->set & SPHASE_SET_TIME) job->time_limit = answer->time_limit;
}

/* In place: a smaller number never needs more room. */
static void lower_number(char* there, uint32_t value) {
  char text[16];
  snprintf(text, sizeof(text), "%" PRIu32, value);
  if (there != NULL && strlen(there) >= strlen(text)) memcpy(there, text, strlen(text) + 1);
}

static void write_tasks(const struct sphase_answer* answer, const struct environment* there) {
  if ((answer->set & SPHASE_SET_ENV_TASKS) == 0) return;
  lower_number(there->value[kNTasks], answer->env_tasks);
  lower_number(there->value[kNProcs], answer->env_tasks);
}

/* Another plugin, or the administrator, may have written there before. */
static void append(char** text, const char* separator, const char* more) {
  if (more[0] == '\0') return;
  slurm_xstrfmtcat(text, "%s%s", *text != NULL && (*text)[0] != '\0' ? separator : "", more);
}

static void write_plan(const struct sphase_answer* answer, const struct environment* there,
                       job_desc_msg_t* job) {
  char* entry = NULL;
  if (answer->plan[0] == '\0' || job->environment == NULL || job->env_size == 0 ||
      there->value[kPlan] != NULL) {
    return; /* none, or the user brought one */
  }
  slurm_xstrfmtcat(&entry, "SPHASE_PLAN=%s", answer->plan);
  slurm_xrecalloc((void**)&job->environment, (size_t)job->env_size + 2, sizeof(char*), true, false,
                  __FILE__, __LINE__, __func__);
  job->environment[job->env_size++] = entry;
  job->environment[job->env_size] = NULL;
}

int job_submit(job_desc_msg_t* job, uint32_t submit_uid, char** err_msg) {
  struct sphase_request request;
  struct sphase_answer answer;
  struct environment environment;
  (void)submit_uid; /* root may submit for a user: the job is the user's */
  if (job == NULL) return SLURM_SUCCESS;
  read_environment(job, &environment);
  read_job(job, &environment, &request);
  sphase_answer_request(&request, &answer);
  write_numbers(&request, &answer, job);
  write_tasks(&answer, &environment);
  write_plan(&answer, &environment, job);
  append(&job->admin_comment, "; ", answer.audit);
  if (err_msg != NULL) append(err_msg, "\n", answer.message);
  return SLURM_SUCCESS;
}
