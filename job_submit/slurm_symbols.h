/* Functions that slurmctld exports to its plugins but that stand in no public header. Strings and
 * arrays in a job_desc_msg_t, and *err_msg, must come from them, since Slurm frees them.
 * Source: src/common/xmalloc.h and xstring.h; the same in 22.05, 24.11 and 26.05. */
#ifndef SPHASE_JOB_SUBMIT_SLURM_SYMBOLS_H
#define SPHASE_JOB_SUBMIT_SLURM_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

char* slurm_xstrdup(const char* text);
/* Appends to *text, which may be NULL. */
void slurm_xstrfmtcat(char** text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void* slurm_xrecalloc(void** items, size_t count, size_t size, bool clear, bool try_only,
                      const char* file, int line, const char* function);

#endif
