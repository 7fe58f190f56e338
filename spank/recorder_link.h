/* Messages between the plugin (in slurmstepd) and the recorder of one step, over a SOCK_SEQPACKET
 * socketpair: one message, one packet. The plugin never waits longer than kLink*WaitMs for an
 * answer; the recorder never waits for the plugin at all.
 *
 *   plugin -> recorder   START (once, before any task), ATTACH (a task exists, has not run exec),
 *                        TASK_EXIT (Slurm reaped it, its cgroup is still there), GOODBYE
 *   batch task -> recorder  RESTARTS (just before its program runs; see sphase_restart_count())
 *   recorder -> plugin   an ACK for each but RESTARTS, sent when the counters have been read
 *
 * End of file at the recorder: slurmstepd is gone, so the step is over.
 * Both sides come from one build; a version that differs ends the recorder.
 */
#ifndef SPHASE_SPANK_RECORDER_LINK_H
#define SPHASE_SPANK_RECORDER_LINK_H

#include <stdint.h>

#define SPHASE_LINK_VERSION 2u
#define SPHASE_LINK_UNKNOWN UINT64_MAX /* a number that Slurm did not tell */

enum sphase_link_type {
  SPHASE_LINK_START = 1,
  SPHASE_LINK_ATTACH = 2,
  SPHASE_LINK_TASK_EXIT = 3,
  SPHASE_LINK_GOODBYE = 4,
  SPHASE_LINK_STORED = 5, /* only as an ACK: everything is in node.db; follows GOODBYE's */
  SPHASE_LINK_RESTARTS = 6
};

/* How long slurmstepd waits for an answer, ms. Each is a limit for the whole step, not per task. */
enum { kLinkAttachWaitMs = 50, kLinkTaskExitWaitMs = 50, kLinkGoodbyeWaitMs = 250 };

/* Everything the recorder knows about its step. Strings end in NUL, cut where too long. */
struct sphase_link_start {
  uint32_t type; /* SPHASE_LINK_START */
  uint32_t version;
  uint64_t start_ns; /* CLOCK_REALTIME at the plugin's start: part of the run's identity */
  uint32_t job_id;
  uint32_t restart_count;
  uint32_t uid;
  uint32_t gid;
  uint32_t stepd_pid;
  uint32_t reserved;
  uint64_t array_job_id; /* SPHASE_LINK_UNKNOWN: not an array */
  uint64_t array_task_id;
  uint64_t het_job_id; /* SPHASE_LINK_UNKNOWN: not heterogeneous */
  uint64_t het_offset;
  uint64_t node_index;
  uint64_t step_nodes;
  uint64_t step_tasks;
  uint64_t node_tasks;
  uint64_t job_cpus;          /* on this node */
  uint64_t step_cpus;         /* on this node */
  uint64_t job_memory_bytes;  /* on this node */
  uint64_t step_memory_bytes; /* on this node */
  uint64_t period_ns;
  uint64_t max_bytes; /* cap of node.db */
  char step[24];
  char cluster[64];
  char node[128];
  char job_name[128];
  char partition[64];
  char account[64];
  char slurm_version[32];
  char options[256];
  char events[128]; /* PAPI events joined by '+', "" = the usual ones, "off" = none */
  char profile[128];
  char socket_path[108]; /* where applications connect; made by the recorder */
  char node_db[256];
  char run_dir[80];
};

struct sphase_link_task {
  uint32_t type; /* ATTACH, TASK_EXIT, or GOODBYE, RESTARTS (the other fields 0) */
  uint32_t task; /* local id */
  uint32_t global_task;
  uint32_t pid;
  int32_t exit_status;    /* TASK_EXIT */
  uint32_t restart_count; /* RESTARTS */
};

struct sphase_link_ack {
  uint32_t type; /* of the message it answers */
  uint32_t task;
};

#endif
