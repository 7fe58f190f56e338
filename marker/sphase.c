/* SPDX-License-Identifier: MIT
 *
 * Each thread keeps its stack of open phases as one hash per name. So `depth` in the records is
 * true even where a program forgets an end or ends what it never began; and the end of a phase
 * whose begin was dropped is not recorded either.
 *
 * `depth` as recorded counts the phases whose BEGIN is in the ring: that is what the reader's own
 * stack can agree with. The depth returned to the program counts them all, with sphase or without.
 */
#include "marker/sphase.h"

#include <limits.h>
#include <stddef.h>

#include "marker/internal.h"

/* `sent`: phases of this thread that the reader has open, before a BEGIN or after an END. */
static int record(struct sphase_process* process, const struct sphase_thread* self, uint8_t type,
                  const struct sphase_text* text, double value, uint32_t sent) {
  const struct sphase_mark mark = {.text = text,
                                   .value = value,
                                   .tid = self->tid,
                                   .depth = self->loose ? SPHASE_DEPTH_UNKNOWN : (uint16_t)sent,
                                   .type = type};
  return sphase_push(process, &mark, NULL);
}

/* Phases of this thread that another thread ended look open here for ever. Once they may have
 * filled the stack it is given up, so that this thread is still recorded. The reader, which sees
 * the ends of all threads, then goes by names alone. */
static void forget_if_stale(struct sphase_process* process, struct sphase_thread* self) {
  if (__atomic_load_n(&process->foreign_ends, __ATOMIC_RELAXED) < SPHASE_MAX_DEPTH) return;
  self->depth = 0;
  self->sent = 0;
  self->sent_mask = 0;
  self->loose = 1;
}

/* One BEGIN at depth 32, without its END, lets the reader tell the user why there is no more. */
static void tell_too_deep(struct sphase_process* process, struct sphase_thread* self,
                          const char* name) {
  struct sphase_text text;
  if (self->told_deep || self->sent != SPHASE_MAX_DEPTH) return;
  self->told_deep =
      sphase_text_phase(&text, name) && record(process, self, SPHASE_BEGIN, &text, 0, self->sent);
}

/* What a signal handler marks in the midst of this is at a depth that fits the ring: a phase counts
 * as sent from before its BEGIN until after its END. */
static int begin(struct sphase_thread* self, struct sphase_process* process, const char* name) {
  if (self->depth >= SPHASE_MAX_DEPTH && process != NULL) {
    forget_if_stale(process, self);
    tell_too_deep(process, self, name);
  }
  const uint32_t level = self->depth++;
  if (level >= SPHASE_MAX_DEPTH) return (int)(level & INT_MAX);
  struct sphase_text text;
  const int named = sphase_text_phase(&text, name);
  self->names[level] = named ? text.hash : 0;
  if (!named || process == NULL) return (int)level;
  self->sent_mask |= UINT32_C(1) << level;
  const uint32_t before = self->sent++;
  if (!record(process, self, SPHASE_BEGIN, &text, 0, before)) {
    self->sent_mask ^= UINT32_C(1) << level;
    self->sent = before;
  }
  return (int)level;
}

/* The level that an end closes, or -1: no phase of that name is open. hash 0: any name. */
static int64_t level_of(const struct sphase_thread* self, uint32_t hash) {
  int64_t level = (int64_t)self->depth - 1;
  if (hash == 0 || level >= SPHASE_MAX_DEPTH) return level;
  while (level >= 0 && self->names[level] != hash) --level;
  return level;
}

static uint32_t count(uint32_t bits) {
  uint32_t n = 0;
  for (; bits != 0; bits &= bits - 1) ++n;
  return n;
}

static int end(struct sphase_thread* self, struct sphase_process* process, const char* name) {
  struct sphase_text text;
  const int named = sphase_text_phase(&text, name);
  const int64_t level = level_of(self, named ? text.hash : 0);
  if (level < 0) {
    /* Recorded all the same: the phase is another thread's, or the report names the culprit. */
    if (process == NULL) return (int)(self->depth & INT_MAX);
    __atomic_fetch_add(&process->foreign_ends, 1, __ATOMIC_RELAXED);
    record(process, self, SPHASE_END, named ? &text : NULL, 0, self->sent);
    return (int)(self->depth & INT_MAX);
  }
  const uint32_t bit = level < SPHASE_MAX_DEPTH ? UINT32_C(1) << level : 0;
  const uint32_t closed = bit != 0 ? self->sent_mask & ~(bit - 1) : 0; /* it and those inside */
  const uint32_t left = self->sent - count(closed);
  if ((closed & bit) != 0 && process != NULL) {
    record(process, self, SPHASE_END, named ? &text : NULL, 0, left);
  }
  self->depth = (uint32_t)level;
  self->sent_mask ^= closed;
  self->sent = left;
  return (int)(level & INT_MAX);
}

static int is_off(const struct sphase_thread* self) {
  return SPHASE_LIKELY(sphase_word() == self->off);
}

/* Whichever call finds out that the process is off leaves the depth so far for the next ones. */
static __attribute__((noinline)) int begin_unless_off(struct sphase_thread* self,
                                                      const char* name) {
  const int depth = begin(self, sphase_enter(self), name);
  self->off_begins = self->depth;
  return depth;
}

static __attribute__((noinline)) int end_unless_off(struct sphase_thread* self, const char* name) {
  const int depth = end(self, sphase_enter(self), name);
  self->off_begins = self->depth;
  return depth;
}

/* The two hot functions begin at a cache line: what they take when off is a matter of fetching. */
#define SPHASE_HOT __attribute__((aligned(64)))

/* Off, a pair only counts: begins and ends apart, since with a single count each call would wait
 * for the store of the one before. */
SPHASE_HOT int sphase_begin(const char* name) {
  struct sphase_thread* self = &sphase_self;
  if (!is_off(self)) return begin_unless_off(self, name);
  return (int)((self->off_begins++ - self->off_ends) & INT_MAX);
}

SPHASE_HOT int sphase_end(const char* name) {
  struct sphase_thread* self = &sphase_self;
  if (!is_off(self)) return end_unless_off(self, name);
  if (self->off_begins == self->off_ends) return 0;
  return (int)((self->off_begins - ++self->off_ends) & INT_MAX);
}

void sphase_value(const char* name, double value) {
  struct sphase_thread* self = &sphase_self;
  if (is_off(self)) return;
  struct sphase_process* process = sphase_enter(self);
  struct sphase_text text;
  if (process != NULL && sphase_text_label(&text, name)) {
    record(process, self, SPHASE_VALUE, &text, value, self->sent);
  }
}

void sphase_attr(const char* key, const char* value) {
  struct sphase_thread* self = &sphase_self;
  if (is_off(self)) return;
  struct sphase_process* process = sphase_enter(self);
  struct sphase_text text;
  if (process != NULL && sphase_text_pair(&text, key, value)) {
    record(process, self, SPHASE_ATTR, &text, 0, self->sent);
  }
}

int sphase_active(void) {
  struct sphase_thread* self = &sphase_self;
  return !is_off(self) && sphase_enter(self) != NULL;
}
