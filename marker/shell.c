/* SPDX-License-Identifier: MIT
 *
 * Markers of the `sphase` command. The process that marks is gone at once, so its phases belong to
 * the task, depth is for the reader to know, and the command may wait until the counters are read:
 * what the script does next is then outside.
 */
#include <time.h>

#include "marker/internal.h"

#define FIRST_NAP_NS 20000
#define LONGEST_NAP_NS 1000000

int sphase_mark_shell(enum sphase_record_type type, const char* name, const char* text,
                      double value, uint64_t* position) {
  struct sphase_thread* self = &sphase_self;
  struct sphase_process* process = sphase_enter(self);
  if (process == NULL) return 0;
  struct sphase_text words;
  int named = 0;
  if (type == SPHASE_ATTR) {
    named = sphase_text_pair(&words, name, text);
  } else if (type == SPHASE_VALUE) {
    named = sphase_text_label(&words, name);
  } else {
    named = sphase_text_phase(&words, name);
  }
  if (!named && type != SPHASE_END) return 0;
  const struct sphase_mark mark = {.text = named ? &words : NULL,
                                   .value = value,
                                   .tid = self->tid,
                                   .depth = SPHASE_DEPTH_UNKNOWN,
                                   .type = (uint8_t)type,
                                   .flags = SPHASE_FLAG_SHELL};
  return sphase_push(process, &mark, position);
}

void sphase_wait_handled(uint64_t position, int64_t limit_ns) {
  struct sphase_process* process = sphase_enter(&sphase_self);
  if (process == NULL) return;
  const int64_t deadline_ns = sphase_now_ns(CLOCK_MONOTONIC) + limit_ns;
  struct timespec nap = {.tv_sec = 0, .tv_nsec = FIRST_NAP_NS};
  while ((int64_t)(__atomic_load_n(&process->ring->tail, __ATOMIC_ACQUIRE) - position) <= 0) {
    if (sphase_now_ns(CLOCK_MONOTONIC) >= deadline_ns) return;
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < LONGEST_NAP_NS) nap.tv_nsec *= 2;
  }
}
