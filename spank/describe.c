#include "spank/describe.h"

#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An id at *at, which it moves behind it. -1: there is none, or it is no CPU's number. */
static long list_id(const char** at) {
  enum { kMostDigits = 9 };
  long id = 0;
  int digits = 0;
  for (; **at >= '0' && **at <= '9'; ++*at) {
    if (++digits > kMostDigits) return -1;
    id = id * 10 + (**at - '0');
  }
  return digits > 0 ? id : -1;
}

uint64_t sphase_count_list(const char* text) {
  uint64_t count = 0;
  const char* at = text;
  while (at != NULL) {
    const long first = list_id(&at);
    long last = first;
    if (*at == '-') {
      ++at;
      last = list_id(&at);
    }
    if (first < 0 || last < first) return SPHASE_LINK_UNKNOWN;
    count += (uint64_t)(last - first + 1);
    if (*at == '\0') return count;
    if (*at++ != ',') break;
  }
  return SPHASE_LINK_UNKNOWN;
}

static void set_text(char* out, size_t size, const char* value) {
  snprintf(out, size, "%s", value != NULL ? value : "");
}

static void env_text(spank_t spank, const char* name, char* out, size_t size) {
  const spank_err_t got = spank_getenv(spank, name, out, (int)size);
  if (got != ESPANK_SUCCESS && got != ESPANK_NOSPACE) out[0] = '\0'; /* no space: it was cut */
  out[size - 1] = '\0';
}

static uint64_t env_number(spank_t spank, const char* name) {
  char text[32];
  char* end = NULL;
  env_text(spank, name, text, sizeof(text));
  if (text[0] < '0' || text[0] > '9') return SPHASE_LINK_UNKNOWN;
  const unsigned long long number = strtoull(text, &end, 10);
  return *end == '\0' ? number : SPHASE_LINK_UNKNOWN;
}

static uint64_t item_u32(spank_t spank, spank_item_t item) {
  uint32_t value = 0;
  if (spank_get_item(spank, item, &value) != ESPANK_SUCCESS) return SPHASE_LINK_UNKNOWN;
  return value == NO_VAL ? SPHASE_LINK_UNKNOWN : value;
}

static uint64_t item_memory(spank_t spank, spank_item_t item) {
  uint64_t mib = 0; /* Slurm says MB and means MiB */
  if (spank_get_item(spank, item, &mib) != ESPANK_SUCCESS || mib == 0) return SPHASE_LINK_UNKNOWN;
  return mib << 20;
}

/* CPUs of this node. Slurm lists cores here, which are its CPUs where a core is one CPU; the
 * collector prefers slurmctld's own count where it has one. */
static uint64_t item_cores(spank_t spank, spank_item_t item) {
  char* list = NULL;
  if (spank_get_item(spank, item, &list) != ESPANK_SUCCESS || list == NULL) {
    return SPHASE_LINK_UNKNOWN;
  }
  return sphase_count_list(list);
}

uint32_t sphase_restart_count(spank_t spank) {
  const uint64_t item = item_u32(spank, S_SLURM_RESTART_COUNT);
  const uint64_t said = env_number(spank, "SLURM_RESTART_COUNT");
  if (said < UINT32_MAX) return (uint32_t)said;
  return item == SPHASE_LINK_UNKNOWN ? 0 : (uint32_t)item;
}

/* Step kinds are words, never numbers (their ids are 2^32 - 5 and so on). */
static void describe_id(spank_t spank, struct sphase_link_start* out) {
  const uint64_t step_id = item_u32(spank, S_JOB_STEPID);
  uint32_t raw = 0;
  spank_get_item(spank, S_JOB_STEPID, &raw);
  if (raw == SLURM_BATCH_SCRIPT) {
    set_text(out->step, sizeof(out->step), "batch");
  } else if (raw == SLURM_INTERACTIVE_STEP) {
    set_text(out->step, sizeof(out->step), "interactive");
  } else {
    snprintf(out->step, sizeof(out->step), "%llu", (unsigned long long)step_id);
  }
  out->job_id = (uint32_t)item_u32(spank, S_JOB_ID);
  out->restart_count = sphase_restart_count(spank);
  out->array_job_id = item_u32(spank, S_JOB_ARRAY_ID);
  out->array_task_id = item_u32(spank, S_JOB_ARRAY_TASK_ID);
  /* 22.05 gives the job's own id as the array's where there is no array. */
  if (out->array_task_id == SPHASE_LINK_UNKNOWN) {
    out->array_job_id = SPHASE_LINK_UNKNOWN;
  }
}

/* SPANK has no item for this, and SLURM_HET_JOB_ID is not there either (22.05). The environment has
 * the job ids of all components: with sbatch and salloc as ..._HET_GROUP_n, with srun alone only
 * under the old name. --export=NONE takes it away; the collector then has it from slurmctld. */
static void describe_het(spank_t spank, struct sphase_link_start* out) {
  enum { kMostComponents = 128 }; /* MAX_HET_JOB_COMPS, slurm.h */
  const uint64_t size = env_number(spank, "SLURM_HET_SIZE");
  uint64_t leader = SPHASE_LINK_UNKNOWN;
  out->het_job_id = env_number(spank, "SLURM_HET_JOB_ID");
  out->het_offset = env_number(spank, "SLURM_HET_JOB_OFFSET");
  if (out->het_job_id != SPHASE_LINK_UNKNOWN || size == SPHASE_LINK_UNKNOWN) return;
  for (int i = 0; i < kMostComponents && (uint64_t)i < size; ++i) {
    char name[48];
    snprintf(name, sizeof(name), "SLURM_JOB_ID_HET_GROUP_%d", i);
    uint64_t id = env_number(spank, name);
    if (id == SPHASE_LINK_UNKNOWN) {
      snprintf(name, sizeof(name), "SLURM_JOB_ID_PACK_GROUP_%d", i);
      id = env_number(spank, name);
    }
    if (i == 0) leader = id;
    if (id != out->job_id) continue;
    out->het_job_id = leader;
    out->het_offset = (uint64_t)i;
  }
}

static void describe_size(spank_t spank, struct sphase_link_start* out) {
  out->node_index = item_u32(spank, S_JOB_NODEID);
  out->step_nodes = item_u32(spank, S_JOB_NNODES);
  out->step_tasks = item_u32(spank, S_JOB_TOTAL_TASK_COUNT);
  out->node_tasks = item_u32(spank, S_JOB_LOCAL_TASK_COUNT);
  out->job_cpus = item_cores(spank, S_JOB_ALLOC_CORES);
  out->step_cpus = item_cores(spank, S_STEP_ALLOC_CORES);
  out->job_memory_bytes = item_memory(spank, S_JOB_ALLOC_MEM);
  out->step_memory_bytes = item_memory(spank, S_STEP_ALLOC_MEM);
  if (strcmp(out->step, "batch") == 0) {
    /* 22.05 says 0 nodes here, and the tasks of the whole job. */
    out->step_nodes = 1;
    out->step_tasks = 1;
  }
}

static void describe_names(spank_t spank, struct sphase_link_start* out) {
  env_text(spank, "SLURM_CLUSTER_NAME", out->cluster, sizeof(out->cluster));
  env_text(spank, "SLURM_JOB_NAME", out->job_name, sizeof(out->job_name));
  env_text(spank, "SLURM_JOB_PARTITION", out->partition, sizeof(out->partition));
  env_text(spank, "SLURM_JOB_ACCOUNT", out->account, sizeof(out->account));
  /* slurmstepd's own environment: several slurmd on one host have one host name. */
  const char* node = getenv("SLURMD_NODENAME");
  if (node != NULL) {
    set_text(out->node, sizeof(out->node), node);
  } else if (gethostname(out->node, sizeof(out->node) - 1) != 0) {
    set_text(out->node, sizeof(out->node), "unknown");
  }
  char* version = NULL;
  if (spank_get_item(spank, S_SLURM_VERSION, &version) == ESPANK_SUCCESS) {
    set_text(out->slurm_version, sizeof(out->slurm_version), version);
  }
}

void sphase_describe_step(spank_t spank, const struct sphase_site_options* site,
                          const struct sphase_job_options* job, const char* option_text,
                          struct sphase_link_start* out) {
  struct timespec now;
  memset(out, 0, sizeof(*out));
  clock_gettime(CLOCK_REALTIME, &now);
  out->type = SPHASE_LINK_START;
  out->version = SPHASE_LINK_VERSION;
  out->start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  out->stepd_pid = (uint32_t)getpid();
  out->uid = (uint32_t)item_u32(spank, S_JOB_UID);
  out->gid = (uint32_t)item_u32(spank, S_JOB_GID);
  out->period_ns =
      (uint64_t)(job->period_ms != 0 ? job->period_ms : site->period_ms) * UINT64_C(1000000);
  out->max_bytes = (uint64_t)site->max_bytes;
  describe_id(spank, out);
  describe_het(spank, out);
  describe_size(spank, out);
  describe_names(spank, out);
  set_text(out->options, sizeof(out->options), option_text);
  set_text(out->events, sizeof(out->events), job->events[0] != '\0' ? job->events : site->events);
  set_text(out->profile, sizeof(out->profile), job->profile);
  set_text(out->run_dir, sizeof(out->run_dir), site->run_dir);
}
