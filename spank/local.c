/* In srun, sbatch and salloc: check the options' values before anything is queued. */
#include <slurm/slurm.h>
#include <stdio.h>

#include "common/resize_option.h"
#include "spank/options.h"
#include "spank/plugin.h"

int sphase_local_option(const char* value) {
  struct sphase_job_options options;
  char why[512];
  if (sphase_job_options_parse(value, &options, why, sizeof(why)) == 0) return 0;
  slurm_error("%s", why);
  return -1;
}

int sphase_local_resize(const char* value) {
  struct sphase_resize_option option;
  char why[512];
  if (sphase_resize_option_parse(value, &option, why, sizeof(why)) == 0) return 0;
  slurm_error("%s", why);
  return -1;
}
