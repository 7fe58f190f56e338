/* What slurmctld is asked for and what we answer, without Slurm's types: plugin.c copies a
 * job_desc_msg_t into a request and an answer back; everything between is C++ that a test can call.
 *
 * Nothing is owned: strings belong to the job_desc and live as long as the call. Both structs live
 * on the stack of one of slurmctld's threads (11 KiB together).
 */
#ifndef SPHASE_JOB_SUBMIT_REQUEST_H
#define SPHASE_JOB_SUBMIT_REQUEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPHASE_UNSET UINT32_MAX
#define SPHASE_UNSET64 UINT64_MAX

/* Why a job, or its size, is none of our business. */
enum sphase_trait {
  SPHASE_ARRAY = 1,
  SPHASE_HET = 2,
  SPHASE_RESERVATION = 4,
  SPHASE_GRES = 8,
  SPHASE_NODE_LIST = 16, /* names its nodes, or excludes some with a layout of its own */
  SPHASE_HELPER = 32,    /* made to be merged into another job */
  SPHASE_LAYOUT = 64     /* tasks per socket, core, …: a layout that we do not follow */
};

struct sphase_request {
  uint32_t uid;
  const char* name; /* NULL where the job has none; so below */
  const char* partition;
  const char* account;
  const char* script;    /* sbatch alone */
  const char* resize;    /* value of --phase-resize */
  const char* telemetry; /* value of --phase-telemetry */
  unsigned traits;       /* enum sphase_trait */
  int batch;             /* sbatch: has an environment */
  int explain;           /* a dry run: say everything */

  /* SPHASE_UNSET where the user left it to Slurm. */
  uint32_t nodes_min, nodes_max;
  uint32_t tasks, tasks_per_node, cpus_per_task;
  uint32_t env_tasks;         /* SLURM_NTASKS as sbatch put it into the job's environment */
  uint32_t cpus_min;          /* over all nodes; sbatch always sets it */
  uint32_t cpus_per_node_min; /* --mincpus; sbatch derives it from -c and --ntasks-per-node */
  uint32_t time_limit;        /* min */
  uint64_t memory_mib;        /* SPHASE_UNSET64; per node, or per CPU: */
  int memory_per_cpu;
};

enum sphase_change {                       /* bits of sphase_answer.set */
                     SPHASE_SET_NODES = 1, /* nodes_min and nodes_max */
                     SPHASE_SET_TASKS = 2,
                     SPHASE_SET_CPUS_MIN = 4,
                     SPHASE_SET_CPUS_PER_TASK = 8,
                     SPHASE_SET_MEMORY = 16, /* per node or per CPU, as the request was */
                     SPHASE_SET_TIME = 32,
                     SPHASE_SET_CPUS_PER_NODE = 64,
                     SPHASE_SET_ENV_TASKS =
                         128 /* SLURM_NTASKS and SLURM_NPROCS; slurmd leaves them as they are */
};

struct sphase_answer {
  unsigned set;
  uint32_t nodes_min, nodes_max, tasks, env_tasks, cpus_min, cpus_per_node_min, cpus_per_task,
      time_limit;
  uint64_t memory_mib;
  char message[1024]; /* for the user, "" = nothing to say; lines without newline at the end */
  char audit[768];    /* for AdminComment, "" = none */
  char plan[8192];    /* JSON for SPHASE_PLAN, "" = none */
};

/* Answers one request. Never fails: an answer without changes is a normal one.
 * Cost: about 17 us in a loop, of which 8 are the open, read and close of the table, 4 the search
 * of a script of 2 KB for sizes and 2 its hash; twice that in slurmctld, whose caches are cold
 * after each sleep. No lock, no heap. */
void sphase_answer_request(const struct sphase_request* request, struct sphase_answer* answer);

/* Where one line for slurmctld's log goes: slurm_info, a test's own. */
typedef void (*sphase_log_function)(const char* line);

/* Reads sphase.conf for the first time. `path` NULL: the usual place. */
void sphase_submit_start(const char* path, sphase_log_function log);

#ifdef __cplusplus
}
#endif

#endif
