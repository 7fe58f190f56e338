/* SPDX-License-Identifier: MIT
 *
 * The marker ring: shared memory between the processes of one step on one node (writers) and the
 * recorder of that step (the only reader).
 *
 * How a process gets it: connect to the SOCK_SEQPACKET socket named by $SPHASE_SOCKET, send one
 * sphase_hello, receive one sphase_welcome with a memfd attached (SCM_RIGHTS), map it, close both.
 * No descriptor stays behind in the application: a program that closes "all" descriptors and
 * reuses their numbers can never make us write into a file of its own. The memfd is sealed against
 * shrinking and growing, so that no writer can make the reader fault.
 *
 * Layout of the mapping: one sphase_ring (a page), then `capacity` records of 128 bytes.
 *
 * Protocol (bounded multi-producer queue with a sequence number per slot, after D. Vyukov,
 * "Bounded MPMC queue", 1024cores.net; here with one consumer):
 *   writer  pos = head; slot = records[pos % capacity]
 *           slot.seq == pos      -> claim it with CAS(head, pos, pos + 1), fill it,
 *                                   then publish it: CAS(slot.seq, pos, pos + 1); that fails if
 *                                   the reader has skipped the slot meanwhile
 *           slot.seq <  pos      -> full: dropped += 1, give up. A writer never waits.
 *   reader  slot.seq == pos + 1  -> copy it out, slot.seq = pos + capacity (release)
 *           a slot claimed but not published for 100 ms (its writer was killed) is skipped.
 *   tail    is stored by the reader after everything before it has been handled *and* the counters
 *           of its edges have been read; `sphase begin` in a shell waits for it.
 *   bell    the reader stores 1 before it sleeps in FUTEX_WAIT on this word; a writer that finds 1
 *           exchanges it with 0 and, if it got the 1, calls FUTEX_WAKE.
 *
 * Everything in here can be overwritten by the user's processes at any time: the reader trusts
 * nothing, keeps its own position and capacity, and copies a record before it looks at it.
 */
#ifndef SPHASE_COMMON_RING_H
#define SPHASE_COMMON_RING_H

#include <stdint.h>

#define SPHASE_RING_MAGIC UINT64_C(0x3130657361687073) /* "sphase01", little endian */
#define SPHASE_WIRE_VERSION 1u
#define SPHASE_RING_HEADER_BYTES 4096u
#define SPHASE_RING_CAPACITY 4096u /* records; a power of two; 512 KiB */
#define SPHASE_RECORD_BYTES 128u
#define SPHASE_TEXT_BYTES 80u /* name, or key NUL value; not necessarily NUL-terminated */
#define SPHASE_MAX_DEPTH 32u  /* deeper phases are counted, not recorded */
#define SPHASE_DEPTH_UNKNOWN UINT16_C(0xffff)

#define SPHASE_SOCKET_ENV "SPHASE_SOCKET" /* set by the SPANK plugin; absent = inactive */

enum sphase_record_type {
  SPHASE_BEGIN = 1,
  SPHASE_END = 2,   /* text_len 0: the innermost phase, whatever its name */
  SPHASE_VALUE = 3, /* text = name, value = the number */
  SPHASE_ATTR = 4   /* text = key NUL value */
};

enum sphase_record_flags {
  SPHASE_FLAG_SHELL = 1,    /* marked by the `sphase` command: the phase belongs to the whole task,
                               not to the process that marks it, which is gone at once */
  SPHASE_FLAG_TRUNCATED = 2 /* the text was longer than SPHASE_TEXT_BYTES */
};

/* One marker. 128 bytes, two cache lines. */
struct sphase_record {
  uint64_t seq;         /* see the protocol above */
  uint64_t time_ns;     /* CLOCK_MONOTONIC when the marker fired */
  uint64_t cpu_time_ns; /* CLOCK_PROCESS_CPUTIME_ID of the marking process, 0 = not stamped
                           (stamped at most once per millisecond and process) */
  double value;         /* SPHASE_VALUE only */
  uint32_t client;      /* number given by sphase_welcome */
  uint32_t tid;         /* thread that marked, as that process sees it (gettid) */
  uint16_t depth;       /* recorded phases open in this thread before this BEGIN / left after this
                           END; lets the reader find lost ends. SPHASE_MAX_DEPTH: a lone BEGIN that
                           only says "too deep". SPHASE_DEPTH_UNKNOWN: always for SHELL, and for a
                           thread whose phases others end */
  uint8_t type;         /* sphase_record_type */
  uint8_t flags;        /* sphase_record_flags */
  uint8_t text_len;     /* bytes used in text, <= SPHASE_TEXT_BYTES */
  uint8_t reserved[3];  /* 0 */
  char text[SPHASE_TEXT_BYTES];
};

/* First page of the mapping. Each hot word has a cache line (and its neighbour) of its own. */
struct sphase_ring {
  uint64_t magic;
  uint32_t version;
  uint32_t capacity;
  uint8_t pad0[112];
  uint64_t head; /* next slot to claim; writers */
  uint8_t pad1[120];
  uint64_t tail; /* everything before it is handled; reader */
  uint8_t pad2[120];
  uint32_t bell; /* 1 = the reader sleeps and wants FUTEX_WAKE */
  uint8_t pad3[124];
  uint64_t dropped; /* markers given up because the ring was full; writers */
  uint8_t pad4[120];
  uint8_t rest[SPHASE_RING_HEADER_BYTES - 5 * 128];
};

struct sphase_hello {
  uint64_t magic;
  uint32_t version;
  uint32_t reserved;
};

struct sphase_welcome {
  uint64_t magic;
  uint32_t version;
  uint32_t client;   /* number of this process in this step */
  uint32_t capacity; /* records */
  uint32_t reserved;
};

#ifdef __cplusplus
static_assert(sizeof(struct sphase_record) == SPHASE_RECORD_BYTES, "record layout");
static_assert(sizeof(struct sphase_ring) == SPHASE_RING_HEADER_BYTES, "ring layout");
#else
_Static_assert(sizeof(struct sphase_record) == SPHASE_RECORD_BYTES, "record layout");
_Static_assert(sizeof(struct sphase_ring) == SPHASE_RING_HEADER_BYTES, "ring layout");
#endif

#endif
