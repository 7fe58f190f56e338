#include <slurm/slurm_errno.h>

#include "job_submit/slurm_symbols.h"

/* `scontrol update` and the like: what somebody says about a job that is there already holds. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
int job_modify(job_desc_msg_t* job, void* record, uint32_t submit_uid, char** err_msg) {
  (void)err_msg;
#else
int job_modify(job_desc_msg_t* job, void* record, uint32_t submit_uid) {
#endif
  (void)job;
  (void)record;
  (void)submit_uid;
  return SLURM_SUCCESS;
}
