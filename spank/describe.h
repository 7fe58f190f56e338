/* What Slurm says about the step that starts here, for the recorder. */
#ifndef SPHASE_SPANK_DESCRIBE_H
#define SPHASE_SPANK_DESCRIBE_H

#include <slurm/spank.h>

#include "spank/options.h"
#include "spank/recorder_link.h"

/* Fills everything but socket_path and node_db. What Slurm does not tell stays unknown. */
void sphase_describe_step(spank_t spank, const struct sphase_site_options* site,
                          const struct sphase_job_options* job, const char* option_text,
                          struct sphase_link_start* out);

/* How often the job was requeued before. 22.05: S_SLURM_RESTART_COUNT is always 0, and the
 * environment has SLURM_RESTART_COUNT (where it is not 0) in the batch step only from task_init on.
 * Inner steps inherit it, but for --export=NONE; start_ns tells those runs apart. */
uint32_t sphase_restart_count(spank_t spank);

/* Number of ids in a Slurm list such as "0-3,8". SPHASE_LINK_UNKNOWN for text that is none. */
uint64_t sphase_count_list(const char* text);

#endif
