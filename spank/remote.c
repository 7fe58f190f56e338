/* In slurmstepd: start the recorder of this step, hand it the tasks, say goodbye.
 *
 * slurmstepd runs this as root, before and after it runs the user's tasks. A problem of ours is
 * logged with slurm_info, never slurm_error: slurmstepd copies errors to the user's stderr, and the
 * output of a job does not change because of us. What went wrong reaches the report as a note
 * (common/note.h).
 */
#include <errno.h>
#include <poll.h>
#include <slurm/slurm.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/note.h"
#include "common/ring.h"
#include "spank/describe.h"
#include "spank/hooks.h"
#include "spank/options.h"
#include "spank/plugin.h"
#include "spank/recorder_link.h"
#include "spank/spawn.h"

static struct sphase_site_options site;
static struct sphase_job_options job;
static int option_seen;
static char option_text[256];

static struct sphase_recorder recorder = {-1, -1};
static struct sphase_link_start step; /* as told to the recorder; names the step in notes */
static int attach_budget_ms = kLinkAttachWaitMs;
static int task_exit_budget_ms = kLinkTaskExitWaitMs;
static int slow_noted;

/* slurmstepd itself needs about 20 descriptors, and ours must not be the two that it lacks. */
enum { kFewestFiles = 64, kMostConfigProblems = 4 };

/* What is wrong with plugstack.conf, until there is a step to note it for. */
static char config_problem[kMostConfigProblems][256];
static int config_problems;

static int64_t clock_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 3))) static void note(const char* code, const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  slurm_info("sphase: step %u.%s: %s", step.job_id, step.step, text);
  const struct sphase_note out = {.cluster = step.cluster,
                                  .job_id = step.job_id,
                                  .restart_count = step.restart_count,
                                  .step = step.step,
                                  .node = step.node,
                                  .code = code,
                                  .text = text};
  const int failed = sphase_note_write(site.run_dir, &out);
  if (failed != 0) {
    slurm_info("sphase: notes: cannot write to %s/notes: %s", site.run_dir, strerror(failed));
  }
}

void sphase_remote_init(int argc, char* argv[]) {
  char why[sizeof(config_problem[0])];
  /* -z nodelete keeps our variables where a host loads us again for another step. */
  memset(&job, 0, sizeof(job));
  memset(&step, 0, sizeof(step));
  option_seen = 0;
  option_text[0] = '\0';
  attach_budget_ms = kLinkAttachWaitMs;
  task_exit_budget_ms = kLinkTaskExitWaitMs;
  slow_noted = 0;
  config_problems = 0;
  sphase_site_options_default(&site);
  for (int i = 0; i < argc; ++i) {
    if (sphase_site_option_parse(argv[i], &site, why, sizeof(why)) != 0) {
      slurm_info("sphase: %s", why);
      if (config_problems < kMostConfigProblems) {
        memcpy(config_problem[config_problems++], why, sizeof(why));
      }
    }
  }
}

int sphase_remote_option(const char* value) {
  char why[512];
  struct sphase_job_options parsed;
  if (sphase_job_options_parse(value, &parsed, why, sizeof(why)) != 0) {
    slurm_info("sphase: %s", why); /* cannot happen to a value that srun or sbatch checked */
    return 0;
  }
  job = parsed;
  option_seen = 1;
  const int bare = value == NULL || value[0] == '\0' || strcmp(value, "(null)") == 0;
  snprintf(option_text, sizeof(option_text), "%s", bare ? "on" : value);
  return 0;
}

/* The option reaches a step in one of three ways: by the launch message (the callback above), in
 * the environment of the batch step, or not at all because --export=NONE dropped it; then sbatch's
 * own copy, SLURM_SPANK__SLURM_SPANK_OPTION_…, is still there, since SLURM_* always passes. */
static void find_option(spank_t spank) {
  char value[512];
  if (option_seen) return;
  if (spank_getenv(spank, "SLURM_SPANK_" SPHASE_OPTION_ENV, value, sizeof(value)) ==
      ESPANK_SUCCESS) {
    sphase_remote_option(value);
    return;
  }
  if (site.default_on) {
    job.on = 1;
    snprintf(option_text, sizeof(option_text), "site default");
  }
}

static void name_socket(void) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
    random = step.start_ns; /* only has to be unused; access is by file mode and peer uid */
  }
  snprintf(step.socket_path, sizeof(step.socket_path), "%s/s-%016llx", site.run_dir,
           (unsigned long long)random);
}

static void start_recorder(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kFewestFiles) {
    note("not-active", "slurmstepd may open only %llu files; from %d on, steps are recorded",
         (unsigned long long)files.rlim_cur, kFewestFiles);
    return;
  }
  const int failed = sphase_spawn(site.recorder, &recorder);
  if (failed != 0) {
    note("not-active", "the recorder %s cannot be started: %s", site.recorder, strerror(failed));
    return;
  }
  if (send(recorder.link, &step, sizeof(step), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      (ssize_t)sizeof(step)) {
    note("not-active", "the recorder ended at its start: %s", strerror(errno));
    sphase_recorder_close(&recorder, 1);
  }
}

void sphase_remote_start(spank_t spank) {
  uint32_t step_id = 0;
  if (spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS) return;
  if (step_id == SLURM_EXTERN_CONT) return; /* has no program of the user's */
  find_option(spank);
  /* A step inside a batch job inherits its batch step's socket by the environment. */
  spank_unsetenv(spank, SPHASE_SOCKET_ENV);
  sphase_hooks_clear(spank, site.hooks_dir);
  if (!job.on) return;

  sphase_describe_step(spank, &site, &job, option_text, &step);
  for (int i = 0; i < config_problems; ++i) note("config", "%s", config_problem[i]);
  name_socket();
  if (sphase_expand_node(site.node_db, step.node, step.node_db, sizeof(step.node_db)) != 0) {
    note("not-active", "node_db=%s is too long", site.node_db);
    return;
  }
  start_recorder();
  if (recorder.link < 0) return;
  spank_setenv(spank, SPHASE_SOCKET_ENV, step.socket_path, 1);
  const int direct = step_id != SLURM_BATCH_SCRIPT && step_id != SLURM_INTERACTIVE_STEP;
  sphase_hooks_set(spank, site.hooks_dir, job.hooks_given ? job.hooks : site.hooks, direct);
}

/* A recorder that is killed cannot remove its socket. */
static void end_recorder(void) {
  sphase_recorder_close(&recorder, 1);
  unlink(step.socket_path);
}

static void lost(void) {
  note("recorder-lost", "the recorder ended before its step; it may have been killed");
  end_recorder();
}

/* Waits for the answer to `type`, at most *budget_ms, which it lowers by the time it took.
 * 1: answered. 0: not yet. The link is closed when the recorder is gone. */
static int wait_for_ack(uint32_t type, uint32_t task, int* budget_ms) {
  const int64_t deadline = clock_ms() + *budget_ms;
  int64_t left = *budget_ms;
  int answered = 0;
  while (!answered && recorder.link >= 0) {
    struct pollfd ready = {.fd = recorder.link, .events = POLLIN};
    const int polled = poll(&ready, 1, left > 0 ? (int)left : 0);
    left = deadline - clock_ms();
    if (polled < 0 && errno == EINTR && left > 0) continue;
    if (polled <= 0) break;
    struct sphase_link_ack ack;
    const ssize_t size = recv(recorder.link, &ack, sizeof(ack), MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      if (type == SPHASE_LINK_STORED) break; /* it said what it had to and left */
      lost();
    }
    answered = size == (ssize_t)sizeof(ack) && ack.type == type && ack.task == task;
    if (left <= 0) break; /* even if it never stops to send something else */
  }
  left = deadline - clock_ms();
  *budget_ms = left > 0 ? (int)left : 0;
  return answered;
}

/* 1: the recorder answered within *budget_ms. */
static int tell(const struct sphase_link_task* message, int* budget_ms) {
  if (recorder.link < 0) return 0;
  if (send(recorder.link, message, sizeof(*message), MSG_DONTWAIT | MSG_NOSIGNAL) !=
      (ssize_t)sizeof(*message)) {
    if (errno != EAGAIN) lost();
    return 0;
  }
  return wait_for_ack(message->type, message->task, budget_ms);
}

static void note_slow(int answered) {
  if (answered || recorder.link < 0 || slow_noted) return;
  slow_noted = 1;
  note("recorder-slow", "the recorder did not answer in time; the job went on without waiting");
}

static int this_task(spank_t spank, struct sphase_link_task* message) {
  int task = 0;
  pid_t pid = 0;
  uint32_t global = 0;
  if (spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task < 0) return -1;
  if (spank_get_item(spank, S_TASK_GLOBAL_ID, &global) != ESPANK_SUCCESS) global = UINT32_MAX;
  if (spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS) pid = 0;
  message->task = (uint32_t)task;
  message->global_task = global;
  message->pid = (uint32_t)pid;
  return 0;
}

void sphase_remote_attach(spank_t spank) {
  struct sphase_link_task message = {.type = SPHASE_LINK_ATTACH};
  if (recorder.link < 0 || this_task(spank, &message) != 0) return;
  note_slow(tell(&message, &attach_budget_ms));
}

/* In the child that becomes the task: our end of the link closes when it executes its program. */
void sphase_remote_task_init(spank_t spank) {
  struct sphase_link_task message = {.type = SPHASE_LINK_RESTARTS};
  if (recorder.link < 0 || strcmp(step.step, "batch") != 0) return;
  message.restart_count = sphase_restart_count(spank);
  if (message.restart_count == step.restart_count) return;
  (void)send(recorder.link, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void sphase_remote_task_exit(spank_t spank) {
  struct sphase_link_task message = {.type = SPHASE_LINK_TASK_EXIT};
  int status = 0;
  if (recorder.link < 0 || this_task(spank, &message) != 0) return;
  step.restart_count = sphase_restart_count(spank); /* for notes */
  if (spank_get_item(spank, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS) {
    message.exit_status = status;
  }
  note_slow(tell(&message, &task_exit_budget_ms));
}

void sphase_remote_goodbye(void) {
  const struct sphase_link_task message = {.type = SPHASE_LINK_GOODBYE};
  int budget_ms = kLinkGoodbyeWaitMs;
  if (recorder.link < 0) return;
  const int answered = tell(&message, &budget_ms);
  if (!answered && recorder.link >= 0) {
    note("recorder-slow",
         "the recorder did not answer within %d ms at the end of the step and was ended; what it "
         "had not stored is lost",
         kLinkGoodbyeWaitMs);
  }
  /* It has read everything. Give it the rest of the time to store that, so that a job that Slurm
   * calls completed is in node.db; a slow disk only makes it come later. */
  if (answered) {
    wait_for_ack(SPHASE_LINK_STORED, 0, &budget_ms);
    sphase_recorder_close(&recorder, 0);
  } else if (recorder.link >= 0) {
    end_recorder();
  }
}
