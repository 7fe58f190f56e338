/* The value of --phase-resize: read by srun, sbatch and salloc (SPANK plugin), which refuse a wrong
 * one, and by the job_submit plugin. Plain C without allocation.
 *
 *   off | observe | advise | apply, and after a comma, in any order:
 *   time   lower the time limit too (never done otherwise)
 *   plan   the job resizes itself: begin with the size of its first phase
 */
#ifndef SPHASE_COMMON_RESIZE_OPTION_H
#define SPHASE_COMMON_RESIZE_OPTION_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name under which Slurm carries the value in an environment, and in job_desc.spank_job_env.
 * Source: src/common/plugstack.c, _opt_env_name(). */
#define SPHASE_RESIZE_ENV "_SLURM_SPANK_OPTION_phase_telemetry_phase_resize"
#define SPHASE_TELEMETRY_ENV "_SLURM_SPANK_OPTION_phase_telemetry_phase_telemetry"

enum sphase_resize_mode {
  SPHASE_RESIZE_UNSET = -1,
  SPHASE_RESIZE_OFF, /* in the order of ResizeMode, common/site_config.h */
  SPHASE_RESIZE_OBSERVE,
  SPHASE_RESIZE_ADVISE,
  SPHASE_RESIZE_APPLY
};

struct sphase_resize_option {
  int mode; /* enum sphase_resize_mode */
  int time; /* the time limit may be lowered */
  int plan; /* the job can resize itself */
};

/* Returns 0; or -1 with one line in `why` that says what is wrong and what would be right, and a
 * mode of UNSET. */
int sphase_resize_option_parse(const char* text, struct sphase_resize_option* out, char* why,
                               size_t why_size);

#ifdef __cplusplus
}
#endif

#endif
