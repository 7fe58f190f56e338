/* SPDX-License-Identifier: MIT
 *
 * UNKNOWN -> JOINING -> ON or OFF, once per process. The first thread to mark does it; others wait
 * for it (no longer than it may take itself) so that a program that starts with a parallel region
 * loses no marker.
 *
 * fork needs no handler: the kernel wipes the page in the child, which makes it UNKNOWN again.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "marker/internal.h"

#ifndef MADV_WIPEONFORK /* Linux 4.14, glibc 2.27 */
#define MADV_WIPEONFORK 18
#endif

union sphase_page sphase_page __attribute__((aligned(SPHASE_PAGE_BYTES)));
int sphase_fork_keeps_page;
__thread struct sphase_thread sphase_self = {.off = SPHASE_WORD_NEVER, .on = SPHASE_WORD_NEVER};

static uint32_t generations; /* survives fork, unlike the page */
static int timed_out;        /* this process, or one it was forked from, waited for nothing */

/* Several threads may do this at once: it comes to the same. */
static void make_fork_wipe(void) {
  if (madvise(&sphase_page, sizeof sphase_page, MADV_WIPEONFORK) != 0) {
    __atomic_store_n(&sphase_fork_keeps_page, 1, __ATOMIC_RELAXED);
  }
}

/* Not getpid(): some old versions of glibc remember its answer across clone(). */
static uint32_t own_pid(void) { return (uint32_t)syscall(SYS_getpid); }

/* Where the page is not wiped. */
static void forget_if_forked(struct sphase_process* process) {
  uint32_t word = __atomic_load_n(&process->word, __ATOMIC_ACQUIRE);
  const uint32_t pid = __atomic_load_n(&process->pid, __ATOMIC_RELAXED);
  if (word == SPHASE_WORD_UNKNOWN || pid == 0 || pid == own_pid()) return;
  __atomic_store_n(&process->pid, own_pid(), __ATOMIC_RELAXED);
  __atomic_store_n(&process->cpu_stamp_ns, 0, __ATOMIC_RELAXED);
  __atomic_compare_exchange_n(&process->word, &word, SPHASE_WORD_UNKNOWN, 0, __ATOMIC_ACQ_REL,
                              __ATOMIC_RELAXED);
}

static enum sphase_join_result find_out(struct sphase_process* process) {
  const char* path = secure_getenv(SPHASE_SOCKET_ENV); /* nothing for a setuid program */
  if (path == NULL || path[0] == '\0') return SPHASE_NOT_JOINED;
  /* A recorder that does not answer costs a worker pool 50 ms once, not once per worker. */
  if (timed_out) return SPHASE_NOT_JOINED;
  return sphase_join(process, path);
}

static uint32_t become_known(struct sphase_process* process, struct sphase_thread* self) {
  /* connect, send, recvmsg and close are cancellation points; a thread cancelled there would leave
   * JOINING behind. */
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  self->joining = 1;
  __atomic_store_n(&process->pid, own_pid(), __ATOMIC_RELAXED);
  const enum sphase_join_result result = find_out(process);
  timed_out |= result == SPHASE_JOIN_TIMED_OUT;
  const uint32_t generation = ++generations;
  const uint32_t word =
      result == SPHASE_JOINED ? SPHASE_WORD_ON(generation) : SPHASE_WORD_OFF(generation);
  __atomic_store_n(&process->word, word, __ATOMIC_RELEASE);
  syscall(SYS_futex, &process->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
  self->joining = 0;
  pthread_setcancelstate(cancel_state, NULL);
  return word;
}

/* Returns the word, which is still JOINING if that took too long. */
static uint32_t wait_for_known(struct sphase_process* process, struct sphase_thread* self) {
  const int64_t deadline_ns = sphase_now_ns(CLOCK_MONOTONIC) + SPHASE_JOIN_LIMIT_NS;
  for (;;) {
    const uint32_t word = __atomic_load_n(&process->word, __ATOMIC_ACQUIRE);
    if (word != SPHASE_WORD_JOINING || self->joining || self->waited) return word;
    const int64_t left_ns = deadline_ns - sphase_now_ns(CLOCK_MONOTONIC);
    if (left_ns <= 0) {
      self->waited = 1;
      return word;
    }
    const struct timespec left = {.tv_sec = 0, .tv_nsec = (long)left_ns};
    syscall(SYS_futex, &process->word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, SPHASE_WORD_JOINING, &left,
            NULL, 0);
  }
}

/* This thread forked, and is now the first of another process: no phase is open. */
static void start_over(struct sphase_thread* self) {
  memset(self, 0, sizeof *self);
  self->off = SPHASE_WORD_NEVER;
  self->on = SPHASE_WORD_NEVER;
}

static struct sphase_process* adopt(struct sphase_process* process, struct sphase_thread* self,
                                    uint32_t word) {
  self->word = word;
  if (!SPHASE_WORD_IS_ON(word)) {
    self->off = word;
    return NULL;
  }
  /* Where fork keeps the page every marker comes by here. */
  if (!__atomic_load_n(&sphase_fork_keeps_page, __ATOMIC_RELAXED)) self->on = word;
  self->tid = (uint32_t)syscall(SYS_gettid);
  return process;
}

static struct sphase_process* enter(struct sphase_thread* self) {
  struct sphase_process* process = &sphase_page.process;
  if (__atomic_load_n(&sphase_fork_keeps_page, __ATOMIC_RELAXED)) forget_if_forked(process);
  uint32_t word = sphase_word();
  if (self->word == word && word != SPHASE_WORD_UNKNOWN) {
    return SPHASE_WORD_IS_ON(word) ? process : NULL;
  }
  if (self->word != 0) start_over(self);
  if (word == SPHASE_WORD_UNKNOWN) make_fork_wipe();
  if (word == SPHASE_WORD_UNKNOWN &&
      __atomic_compare_exchange_n(&process->word, &word, SPHASE_WORD_JOINING, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    word = become_known(process, self);
  } else {
    word = wait_for_known(process, self);
  }
  return word == SPHASE_WORD_JOINING ? NULL : adopt(process, self, word);
}

struct sphase_process* sphase_enter_slow(struct sphase_thread* self) {
  const int saved = errno;
  struct sphase_process* process = enter(self);
  errno = saved;
  return process;
}
