#include "tests/spank/fake_spank.h"

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_spank fake_spank;

static struct {
  char name[128];
  char value[1024];
} env[kFakeEnvMost];

void fake_spank_reset(void) {
  memset(&fake_spank, 0, sizeof(fake_spank));
  memset(env, 0, sizeof(env));
  fake_spank.context = S_CTX_REMOTE;
  fake_spank.job_id = 42;
  fake_spank.array_task_id = NO_VAL;
  fake_spank.task = -1;
  fake_spank.cores = "0-1";
  fake_spank.memory_mib = 500;
  fake_spank_env("SLURM_CLUSTER_NAME", "fake");
  fake_spank_env("SLURM_JOB_NAME", "name");
  fake_spank_env("SLURM_JOB_PARTITION", "debug");
}

static int find(const char* name) {
  for (int i = 0; i < kFakeEnvMost; ++i) {
    if (env[i].name[0] != '\0' && strcmp(env[i].name, name) == 0) return i;
  }
  return -1;
}

void fake_spank_env(const char* name, const char* value) {
  int at = find(name);
  if (value == NULL) {
    if (at >= 0) env[at].name[0] = '\0';
    return;
  }
  for (int i = 0; at < 0 && i < kFakeEnvMost; ++i) {
    if (env[i].name[0] == '\0') at = i;
  }
  if (at < 0) abort();
  snprintf(env[at].name, sizeof(env[at].name), "%s", name);
  snprintf(env[at].value, sizeof(env[at].value), "%s", value);
}

const char* fake_spank_env_of(const char* name) {
  const int at = find(name);
  return at < 0 ? NULL : env[at].value;
}

spank_err_t spank_getenv(spank_t spank, const char* name, char* out, int size) {
  (void)spank;
  ++fake_spank.calls;
  const char* value = fake_spank_env_of(name);
  if (value == NULL) return ESPANK_ENV_NOEXIST;
  return snprintf(out, (size_t)size, "%s", value) >= size ? ESPANK_NOSPACE : ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char* name, const char* value, int overwrite) {
  (void)spank;
  ++fake_spank.calls;
  if (!overwrite && find(name) >= 0) return ESPANK_ENV_EXISTS;
  fake_spank_env(name, value);
  return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char* name) {
  (void)spank;
  ++fake_spank.calls;
  fake_spank_env(name, NULL);
  return ESPANK_SUCCESS;
}

spank_context_t spank_context(void) { return (spank_context_t)fake_spank.context; }

spank_err_t spank_option_register(spank_t spank, struct spank_option* option) {
  (void)spank;
  ++fake_spank.calls;
  ++fake_spank.registered;
  if (strcmp(option->name, "phase-telemetry") == 0) fake_spank.option_callback = option->cb;
  if (strcmp(option->name, "phase-resize") == 0) fake_spank.resize_callback = option->cb;
  return ESPANK_SUCCESS;
}

/* Items that are one uint32_t. */
static int small_item(spank_item_t item, uint32_t* out) {
  switch (item) {
    case S_JOB_UID:
      *out = (uint32_t)getuid();
      return 1;
    case S_JOB_GID:
      *out = (uint32_t)getgid();
      return 1;
    case S_JOB_ID:
      *out = fake_spank.job_id;
      return 1;
    case S_JOB_STEPID:
      *out = fake_spank.step_id;
      return 1;
    case S_JOB_ARRAY_ID:
      *out = fake_spank.array_job_id;
      return 1;
    case S_JOB_ARRAY_TASK_ID:
      *out = fake_spank.array_task_id;
      return 1;
    case S_JOB_NODEID:
    case S_SLURM_RESTART_COUNT:
      *out = 0;
      return 1;
    case S_JOB_NNODES:
    case S_JOB_TOTAL_TASK_COUNT:
    case S_JOB_LOCAL_TASK_COUNT:
      *out = 1;
      return 1;
    default:
      return 0;
  }
}

static spank_err_t task_item(spank_item_t item, va_list arguments) {
  if (fake_spank.task < 0) return ESPANK_NOT_TASK;
  switch (item) {
    case S_TASK_ID:
      *va_arg(arguments, int*) = fake_spank.task;
      return ESPANK_SUCCESS;
    case S_TASK_GLOBAL_ID:
      *va_arg(arguments, uint32_t*) = (uint32_t)fake_spank.task + 100;
      return ESPANK_SUCCESS;
    case S_TASK_PID:
      *va_arg(arguments, pid_t*) = fake_spank.task_pid;
      return ESPANK_SUCCESS;
    default:
      *va_arg(arguments, int*) = fake_spank.exit_status;
      return ESPANK_SUCCESS;
  }
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...) {
  va_list arguments;
  uint32_t small = 0;
  spank_err_t result = ESPANK_SUCCESS;
  (void)spank;
  ++fake_spank.calls;
  if (fake_spank.no_items) return ESPANK_BAD_ARG;
  va_start(arguments, item);
  if (small_item(item, &small)) {
    *va_arg(arguments, uint32_t*) = small;
  } else if (item == S_TASK_ID || item == S_TASK_GLOBAL_ID || item == S_TASK_PID ||
             item == S_TASK_EXIT_STATUS) {
    result = task_item(item, arguments);
  } else if (item == S_JOB_ALLOC_CORES || item == S_STEP_ALLOC_CORES) {
    *va_arg(arguments, const char**) = fake_spank.cores;
  } else if (item == S_JOB_ALLOC_MEM || item == S_STEP_ALLOC_MEM) {
    *va_arg(arguments, uint64_t*) = fake_spank.memory_mib;
  } else if (item == S_SLURM_VERSION) {
    *va_arg(arguments, const char**) = "22.05.8";
  } else {
    result = ESPANK_BAD_ARG;
  }
  va_end(arguments);
  return result;
}

#define KEEP_LINE(text, word)                           \
  do {                                                  \
    va_list arguments;                                  \
    va_start(arguments, format);                        \
    vsnprintf(text, sizeof(text), format, arguments);   \
    va_end(arguments);                                  \
    ++fake_spank.logged;                                \
    if (fake_spank.echo) printf("%s %s\n", word, text); \
  } while (0)

void slurm_info(const char* format, ...) { KEEP_LINE(fake_spank.last_log, "log"); }
void slurm_error(const char* format, ...) { KEEP_LINE(fake_spank.last_error, "error"); }
void slurm_debug(const char* format, ...) { KEEP_LINE(fake_spank.last_log, "debug"); }
