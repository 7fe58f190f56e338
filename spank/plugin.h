/* What plugin.c calls in each of Slurm's processes. */
#ifndef SPHASE_SPANK_PLUGIN_H
#define SPHASE_SPANK_PLUGIN_H

#include <slurm/spank.h>

/* Name under which Slurm carries the option's value in an environment.
 * Source: src/common/plugstack.c _opt_env_name(), sbatch.c set of SLURM_SPANK_*. */
#define SPHASE_OPTION_ENV "_SLURM_SPANK_OPTION_phase_telemetry_phase_telemetry"

/* srun, sbatch, salloc: the value of --phase-telemetry. 0, or -1 after saying what is wrong. */
int sphase_local_option(const char* value);

/* The same for --phase-resize. */
int sphase_local_resize(const char* value);

/* slurmstepd, in the order in which Slurm calls them. None of them can fail. */
void sphase_remote_init(int argc, char* argv[]); /* plugstack.conf arguments */
int sphase_remote_option(const char* value);     /* may come twice: the last one wins; 0 */
void sphase_remote_start(spank_t spank);         /* forks the recorder: about 1 ms */
void sphase_remote_attach(spank_t spank);        /* per task; waits at most kLinkAttachWaitMs */
void sphase_remote_task_init(spank_t spank);     /* in the task, as the user; waits for nothing */
void sphase_remote_task_exit(spank_t spank);     /* per task; at most kLinkTaskExitWaitMs */
void sphase_remote_goodbye(void);                /* at most kLinkGoodbyeWaitMs */

#endif
