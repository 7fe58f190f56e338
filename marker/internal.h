/* SPDX-License-Identifier: MIT
 *
 * Inside of the marker library; also used by the `sphase` command and by tests.
 *
 *   sphase.c   the public functions; each thread's stack of open phases
 *   shell.c    markers of the `sphase` command
 *   state.c    whether this process is active, and who finds out: the first marker, once
 *   join.c     how it finds out: the recorder's socket, and the checks before its memory is used
 *   push.c     one record into the ring
 *   text.c     names as they are recorded
 */
#ifndef SPHASE_MARKER_INTERNAL_H
#define SPHASE_MARKER_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/ring.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPHASE_HIDDEN __attribute__((visibility("hidden")))
#define SPHASE_LIKELY(x) __builtin_expect(!!(x), 1)

/* The first use waits no longer than this, in all. */
#define SPHASE_JOIN_LIMIT_NS INT64_C(50000000)

static inline int64_t sphase_now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* --- text.c ---------------------------------------------------------------------------------- */

/* A name, or a key and a value, as it is recorded. */
struct sphase_text {
  uint32_t hash; /* of the whole text, cut or not; equal for equal names */
  uint8_t length;
  uint8_t flags; /* 0 or SPHASE_FLAG_TRUNCATED */
  char bytes[SPHASE_TEXT_BYTES];
};

/* Each returns 0 if there is nothing to record, because the name or key is NULL or "". */
SPHASE_HIDDEN int sphase_text_phase(struct sphase_text* text, const char* name);
SPHASE_HIDDEN int sphase_text_label(struct sphase_text* text, const char* name);
SPHASE_HIDDEN int sphase_text_pair(struct sphase_text* text, const char* key, const char* value);

/* --- state.c --------------------------------------------------------------------------------- */

/* Values of sphase_process.word. A generation is one process's use of the library: a child of fork
 * has its parent's memory, but another generation. */
#define SPHASE_WORD_UNKNOWN 0u /* fresh, or just forked: the page was wiped */
#define SPHASE_WORD_JOINING 1u /* some thread is finding out */
#define SPHASE_WORD_NEVER 2u   /* no word is ever this */
#define SPHASE_WORD_OFF(generation) ((generation) << 2 | 2u)
#define SPHASE_WORD_ON(generation) ((generation) << 2 | 3u)
#define SPHASE_WORD_IS_ON(word) (((word)&3u) == 3u)

/* What a process knows. Alone on a page that fork wipes in the child (MADV_WIPEONFORK). */
struct sphase_process {
  uint32_t word; /* the rest is valid once this is ON */
  uint32_t client;
  uint32_t pid; /* whose page it is; only looked at where fork does not wipe it */
  uint32_t reserved;
  struct sphase_ring* ring; /* writable by every process of the user: nothing in it is trusted */
  uint64_t index_mask;      /* our own copy of capacity - 1 */
  uint8_t pad[96];          /* two cache lines: what follows is written often */
  uint64_t cpu_stamp_ns;    /* CLOCK_MONOTONIC of the last cpu_time_ns stamp */
  uint32_t foreign_ends;    /* ends of phases that were not open in the thread that ended them */
};

/* What a thread knows. */
struct sphase_thread {
  uint32_t off;        /* the OFF word that this thread has adopted, or NEVER */
  uint32_t on;         /* the ON word that it has adopted, if it can rely on it, or NEVER */
  uint32_t word;       /* the word that it has adopted, or 0 */
  uint32_t off_begins; /* while off: how often each was called; their difference is the depth */
  uint32_t off_ends;
  uint32_t depth;     /* phases open, while not off */
  uint32_t sent;      /* how many of them were recorded */
  uint32_t sent_mask; /* bit n: the BEGIN of level n was recorded */
  uint32_t tid;
  uint8_t joining;   /* this thread is in sphase_join: a marker in a signal handler is skipped */
  uint8_t loose;     /* phases of this thread end in others: `depth` is not to be relied on */
  uint8_t told_deep; /* the reader knows that phases here are nested too deep */
  uint8_t waited;    /* has waited in vain for another thread to join: will not again */
  uint32_t names[SPHASE_MAX_DEPTH]; /* hash of each open phase's name, 0 = none */
};

#if defined(__x86_64__) || defined(__i386__)
#define SPHASE_PAGE_BYTES 4096
#else
#define SPHASE_PAGE_BYTES 65536 /* the largest page that the other architectures use */
#endif

/* In .bss, which is anonymous memory: the hot path reaches it without a pointer. */
extern SPHASE_HIDDEN union sphase_page {
  struct sphase_process process;
  uint8_t bytes[SPHASE_PAGE_BYTES];
} sphase_page;

extern SPHASE_HIDDEN int sphase_fork_keeps_page; /* 1: no MADV_WIPEONFORK here, compare pids */
/* initial-exec: one %fs-relative access, no call; 170 bytes of the space that dlopen has for it.
 * That is 512 bytes for all libraries of a program: the adapters of marker/hooks, of which several
 * may be loaded, take their copy elsewhere. */
#ifndef SPHASE_TLS_MODEL
#define SPHASE_TLS_MODEL "initial-exec"
#endif
extern SPHASE_HIDDEN __thread struct sphase_thread sphase_self
    __attribute__((tls_model(SPHASE_TLS_MODEL)));

static inline uint32_t sphase_word(void) {
  return __atomic_load_n(&sphase_page.process.word, __ATOMIC_ACQUIRE);
}

SPHASE_HIDDEN struct sphase_process* sphase_enter_slow(struct sphase_thread* self);

/* The process if it is active, else NULL (this marker is not recorded). Finds out on first use. */
static inline struct sphase_process* sphase_enter(struct sphase_thread* self) {
  return SPHASE_LIKELY(sphase_word() == self->on) ? &sphase_page.process : sphase_enter_slow(self);
}

/* --- join.c ---------------------------------------------------------------------------------- */

enum sphase_join_result { SPHASE_JOINED, SPHASE_NOT_JOINED, SPHASE_JOIN_TIMED_OUT };

/* Joins the recorder that listens at `path`: fills client, ring and index_mask. errno is changed.
 */
SPHASE_HIDDEN enum sphase_join_result sphase_join(struct sphase_process* process, const char* path);

/* --- push.c ---------------------------------------------------------------------------------- */

struct sphase_mark {
  const struct sphase_text* text; /* NULL: none */
  double value;
  uint32_t tid;
  uint16_t depth;
  uint8_t type;
  uint8_t flags;
};

/* Puts one record into the ring. Returns 1, with the record's position if asked for, or 0 if it was
 * dropped. Never waits. */
SPHASE_HIDDEN int sphase_push(struct sphase_process* process, const struct sphase_mark* mark,
                              uint64_t* position);

/* --- shell.c --------------------------------------------------------------------------------- */

/* Marks for the whole task (SPHASE_FLAG_SHELL). `name` NULL with SPHASE_END: the innermost phase.
 * `text` is the value of an attribute. Returns 1 with the record's position, or 0: not recorded. */
SPHASE_HIDDEN int sphase_mark_shell(enum sphase_record_type type, const char* name,
                                    const char* text, double value, uint64_t* position);

/* Waits until the recorder has read the counters for the record at `position`. */
SPHASE_HIDDEN void sphase_wait_handled(uint64_t position, int64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif
