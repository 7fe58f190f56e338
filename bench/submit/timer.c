/* Part of ./dev bench submit: a job_submit plugin that hands each job to the plugin that its name
 * says, and notes how long that took; a job named "none" goes to none. So that all are measured in
 * the same way, taking turns inside one real slurmctld.
 *
 *   $SPHASE_BENCH_OURS, $SPHASE_BENCH_LUA   paths of the plugins for jobs named "ours" and "lua"
 *   $SPHASE_BENCH_TIMES                     file for the times: one struct times of each
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "job_submit/slurm_symbols.h"

enum { kTimesMost = 100000 };

const char plugin_name[] = "sphase bench: times another job_submit plugin";
const char plugin_type[] = "job_submit/bench_timer";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

struct times {
  _Atomic uint64_t count;
  uint64_t ns[kTimesMost];
};

struct plugin {
  const char* name; /* of the jobs that it gets */
  const char* path; /* name of the variable */
  int (*job_submit)(job_desc_msg_t*, uint32_t, char**);
  int (*fini)(void);
};

static struct plugin plugins[] = {{"ours", "SPHASE_BENCH_OURS", NULL, NULL},
                                  {"lua", "SPHASE_BENCH_LUA", NULL, NULL}};
enum { kPlugins = sizeof(plugins) / sizeof(plugins[0]) };
static struct times* times; /* [kPlugins] */

static struct times* map_times(const char* path) {
  const size_t size = kPlugins * sizeof(struct times);
  const int file = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0 || ftruncate(file, (off_t)size) != 0) return NULL;
  /* MAP_POPULATE: a page fault is not the plugin's. */
  void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  return memory != MAP_FAILED ? memory : NULL;
}

static int load(struct plugin* plugin) {
  const char* path = getenv(plugin->path);
  void* object = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
  int (*their_init)(void) = NULL;
  if (object == NULL) {
    slurm_info("sphase bench: $%s: %s", plugin->path, path != NULL ? dlerror() : "not set");
    return SLURM_ERROR;
  }
  *(void**)&their_init = dlsym(object, "init");
  *(void**)&plugin->fini = dlsym(object, "fini");
  *(void**)&plugin->job_submit = dlsym(object, "job_submit");
  return their_init != NULL && plugin->job_submit != NULL ? their_init() : SLURM_ERROR;
}

/* SLURM_ERROR ends slurmctld, which the bench then reports. */
int init(void) {
  times = map_times(getenv("SPHASE_BENCH_TIMES"));
  if (times == NULL) return SLURM_ERROR;
  for (int i = 0; i < kPlugins; ++i) {
    if (load(&plugins[i]) != SLURM_SUCCESS) return SLURM_ERROR;
  }
  return SLURM_SUCCESS;
}

int fini(void) {
  for (int i = 0; i < kPlugins; ++i) {
    if (plugins[i].fini != NULL) plugins[i].fini();
  }
  return SLURM_SUCCESS;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static int submit_to(int i, job_desc_msg_t* job, uint32_t submit_uid, char** err_msg) {
  const uint64_t before = now_ns();
  const int result = plugins[i].job_submit(job, submit_uid, err_msg);
  const uint64_t took = now_ns() - before;
  const uint64_t at = atomic_fetch_add(&times[i].count, 1);
  if (at < kTimesMost) times[i].ns[at] = took;
  return result;
}

int job_submit(job_desc_msg_t* job, uint32_t submit_uid, char** err_msg) {
  for (int i = 0; i < kPlugins && job->name != NULL; ++i) {
    if (strcmp(job->name, plugins[i].name) == 0) return submit_to(i, job, submit_uid, err_msg);
  }
  return SLURM_SUCCESS;
}
