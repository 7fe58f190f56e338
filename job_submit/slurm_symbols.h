/* What slurmctld and its plugins know of each other and no public header tells.
 *
 * Functions that slurmctld exports: strings and arrays in a job_desc_msg_t, and *err_msg, must come
 * from them, since Slurm frees them. Hooks that slurmctld looks up by name.
 * Source: src/common/xmalloc.h, xstring.h, log.h and src/slurmctld/job_submit.c; the same in 22.05,
 * 24.11 and 26.05, but for job_modify(), which has err_msg from 23.02 on. */
#ifndef SPHASE_JOB_SUBMIT_SLURM_SYMBOLS_H
#define SPHASE_JOB_SUBMIT_SLURM_SYMBOLS_H

#include <slurm/slurm.h>
#include <stdbool.h>
#include <stddef.h>

void slurm_info(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Appends to *text, which may be NULL. */
void slurm_xstrfmtcat(char** text, const char* format, ...) __attribute__((format(printf, 2, 3)));
void* slurm_xrecalloc(void** items, size_t count, size_t size, bool clear, bool try_only,
                      const char* file, int line, const char* function);

int init(void);
int fini(void);
int job_submit(job_desc_msg_t* job, uint32_t submit_uid, char** err_msg);
/* `record` is slurmctld's own job_record_t. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
int job_modify(job_desc_msg_t* job, void* record, uint32_t submit_uid, char** err_msg);
#else
int job_modify(job_desc_msg_t* job, void* record, uint32_t submit_uid);
#endif

#endif
