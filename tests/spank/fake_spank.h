/* Slurm's side of the SPANK API, as far as the plugin uses it: what it answers is set by the test,
 * what it is told is kept. */
#ifndef SPHASE_TESTS_SPANK_FAKE_SPANK_H
#define SPHASE_TESTS_SPANK_FAKE_SPANK_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { kFakeEnvMost = 32 };

struct fake_spank {
  int context; /* spank_context_t */
  uint32_t job_id;
  uint32_t step_id;
  uint32_t array_job_id; /* 0: not an array, as Slurm says it */
  uint32_t array_task_id;
  int no_items; /* 1: every item fails, as in a Slurm that does not know it */
  int task;     /* -1: not in a task's hook */
  pid_t task_pid;
  int exit_status;
  const char* cores;
  uint64_t memory_mib;
  int registered;                                                  /* options */
  int (*option_callback)(int value, const char* text, int remote); /* --phase-telemetry */
  int (*resize_callback)(int value, const char* text, int remote); /* --phase-resize */
  long calls; /* of anything but spank_context() */
  long logged;
  char last_log[1024];
  char last_error[1024];
  int echo; /* 1: log lines go to stdout too */
};

extern struct fake_spank fake_spank;

/* Everything as in an ordinary step 0 of job 42. */
void fake_spank_reset(void);
/* The job's environment. NULL removes. */
void fake_spank_env(const char* name, const char* value);
const char* fake_spank_env_of(const char* name);

#ifdef __cplusplus
}
#endif

#endif
