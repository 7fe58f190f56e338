/* SPDX-License-Identifier: MIT
 *
 * The writer's side of the ring; the protocol is in common/ring.h. What is added to it here:
 *
 *  - A record is published by compare-and-swap from `pos`, not by a plain store. A writer that was
 *    stopped for 100 ms between claim and publication (SIGSTOP, a CPU quota) finds that the reader
 *    has passed it by; a plain store would then put an old number back, and every later writer
 *    would take the slot for full, for ever.
 *  - The swap and the look at `bell` are sequentially consistent, as is the reader's store to
 *    `bell` and its last look at the slot: one of the two sees the other, so no wake-up is lost.
 *  - The number of tries is bounded, since a process of the same user could write nonsense into
 *    `head` and `seq`. The memory's address and size are our own copies.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "marker/internal.h"

#define MAX_TRIES 256

/* CLOCK_PROCESS_CPUTIME_ID costs about 280 ns, so it is read once per millisecond and process. */
#define CPU_STAMP_EVERY_NS 1000000

static struct sphase_record* record_at(const struct sphase_process* process, uint64_t pos) {
  struct sphase_record* records =
      (struct sphase_record*)((char*)process->ring + SPHASE_RING_HEADER_BYTES);
  return &records[pos & process->index_mask];
}

/* Returns the claimed slot and its position, or NULL: the ring is full. */
static struct sphase_record* claim(struct sphase_process* process, uint64_t* position) {
  struct sphase_ring* ring = process->ring;
  uint64_t pos = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
  for (int tries = 0; tries < MAX_TRIES; ++tries) {
    struct sphase_record* slot = record_at(process, pos);
    const int64_t lead = (int64_t)(__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) - pos);
    if (lead < 0) break;
    if (lead > 0) { /* another writer took this position */
      pos = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    } else if (__atomic_compare_exchange_n(&ring->head, &pos, pos + 1, 0, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED)) {
      *position = pos;
      return slot;
    }
  }
  __atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELAXED);
  return NULL;
}

static uint64_t cpu_stamp(struct sphase_process* process, uint64_t now_ns) {
  uint64_t last = __atomic_load_n(&process->cpu_stamp_ns, __ATOMIC_RELAXED);
  if (SPHASE_LIKELY(now_ns - last < CPU_STAMP_EVERY_NS)) return 0;
  if (!__atomic_compare_exchange_n(&process->cpu_stamp_ns, &last, now_ns, 0, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    return 0;
  }
  return (uint64_t)sphase_now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static __attribute__((noinline, cold)) void ring_bell(struct sphase_ring* ring) {
  if (__atomic_exchange_n(&ring->bell, 0, __ATOMIC_SEQ_CST) != 1) return;
  const int saved = errno;
  syscall(SYS_futex, &ring->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = saved;
}

int sphase_push(struct sphase_process* process, const struct sphase_mark* mark,
                uint64_t* position) {
  /* Stamped before the claim: what lies between claim and publication holds up the reader. */
  const uint64_t now_ns = (uint64_t)sphase_now_ns(CLOCK_MONOTONIC);
  const uint64_t cpu_time_ns = cpu_stamp(process, now_ns);
  uint64_t pos;
  struct sphase_record* slot = claim(process, &pos);
  if (slot == NULL) return 0;
  slot->time_ns = now_ns;
  slot->cpu_time_ns = cpu_time_ns;
  slot->value = mark->value;
  slot->client = process->client;
  slot->tid = mark->tid;
  slot->depth = mark->depth;
  slot->type = mark->type;
  slot->flags = mark->flags;
  memset(slot->reserved, 0, sizeof slot->reserved);
  if (mark->text != NULL) {
    slot->flags |= mark->text->flags;
    slot->text_len = mark->text->length;
    memcpy(slot->text, mark->text->bytes, sizeof slot->text);
  } else {
    slot->text_len = 0;
  }
  uint64_t expected = pos;
  if (!__atomic_compare_exchange_n(&slot->seq, &expected, pos + 1, 0, __ATOMIC_SEQ_CST,
                                   __ATOMIC_RELAXED)) {
    return 0; /* the reader has given this slot up, and counted it */
  }
  if (__atomic_load_n(&process->ring->bell, __ATOMIC_SEQ_CST) == 1) ring_bell(process->ring);
  if (position != NULL) *position = pos;
  return 1;
}
