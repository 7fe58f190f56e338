/* What the programs of the lab tests share: phases that also say the truth about themselves.
 *
 * For each phase one line on stdout: "truth TASK PHASE NUMBER wall_ns cpu_ns memory_bytes
 * written_bytes", measured by the program itself just inside the markers. Tests compare the
 * recorder with these lines.
 */
#ifndef SPHASE_TESTS_LAB_TRUTH_H
#define SPHASE_TESTS_LAB_TRUTH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "marker/sphase.h"

struct truth {
  const char* phase;
  int number;
  int64_t wall_ns;
  int64_t cpu_ns;
};

static inline int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Global task id, as Slurm tells it to the program. */
static inline const char* task_id(void) {
  const char* task = getenv("SLURM_PROCID");
  return task != NULL ? task : "0";
}

static inline void tell(const struct truth* used, int64_t memory_bytes, int64_t written_bytes) {
  printf("truth %s %s %d %lld %lld %lld %lld\n", task_id(), used->phase, used->number,
         (long long)used->wall_ns, (long long)used->cpu_ns, (long long)memory_bytes,
         (long long)written_bytes);
  fflush(stdout);
}

static inline struct truth enter(const char* phase, int number) {
  sphase_begin(phase);
  const struct truth truth = {phase, number, clock_ns(CLOCK_MONOTONIC),
                              clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  return truth;
}

static inline void leave(const struct truth* begun, int64_t memory_bytes, int64_t written_bytes) {
  const int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun->cpu_ns;
  const int64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - begun->wall_ns;
  sphase_end(begun->phase);
  const struct truth used = {begun->phase, begun->number, wall_ns, cpu_ns};
  tell(&used, memory_bytes, written_bytes);
}

/* A start routine of pthread_create: works until its thread has used *(const long*)ms of CPU time,
 * so that a busy host makes it slower but not smaller. */
static inline void* busy(void* ms) {
  const int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + *(const long*)ms * 1000000;
  volatile double x = 1.0;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
    for (int i = 0; i < 10000; ++i) x = x * 1.0000001 + 1e-9;
  }
  return NULL;
}

#endif
