/* The adapters of marker/hooks, for a step that is recorded: which variables make its programs load
 * them. */
#ifndef SPHASE_SPANK_HOOKS_H
#define SPHASE_SPANK_HOOKS_H

#include <slurm/spank.h>

/* Sets the variable of each of `hooks` (enum sphase_hook, options.h) whose adapter is in `folder`
 * and which the job has not set itself. `direct`: the step is a program that srun starts, not a
 * shell that may go on to set variables of its own. */
void sphase_hooks_set(spank_t spank, const char* folder, unsigned hooks, int direct);

/* Takes back what sphase_hooks_set() did for the step around this one, whose environment this step
 * inherits. What the user has set stays. */
void sphase_hooks_clear(spank_t spank, const char* folder);

#endif
