/* A note: one small text file that says why a run was not, or not wholly, recorded.
 *
 * When the recorder cannot be started, or node.db cannot be written, there is no database to say so
 * in. The plugin (in slurmstepd) or the recorder then leaves a note in RUN_DIR/notes; the next
 * recorder on the node moves it into node.db, and `sphase-collector merge` reads notes too.
 *
 * File: RUN_DIR/notes/TIME_NS-PID.note, mode 0600, at most 1 KiB, lines KEY=VALUE:
 *   cluster job_id restart_count step node time_ns code text
 * C, libc only: it runs inside slurmstepd.
 */
#ifndef SPHASE_COMMON_NOTE_H
#define SPHASE_COMMON_NOTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sphase_note {
  const char* cluster;
  uint32_t job_id;
  uint32_t restart_count;
  const char* step; /* "0", "batch", … */
  const char* node;
  const char* code; /* notice.code of common/vocabulary.h */
  const char* text; /* one sentence; newlines become spaces */
};

/* Writes the note, making RUN_DIR (0711) and RUN_DIR/notes (0700) where absent.
 * At most 1000 notes are kept. Returns 0, or an errno value; the caller has nobody else to tell.
 * Cost: a few file system calls, about 0.1 ms; only ever called after something failed. */
int sphase_note_write(const char* run_dir, const struct sphase_note* note);

#ifdef __cplusplus
}
#endif

#endif
