/* phase_telemetry: the SPANK plugin of sphase. This file is the ABI and nothing else: it finds out
 * in which of Slurm's processes it runs and calls local.c (srun, sbatch, salloc) or remote.c
 * (slurmstepd).
 *
 * Rules of the house for everything below spank/ (not spank/recorder/):
 *   - every hook returns 0. From Slurm 25.05 on any other value counts against the node or the job.
 *     The one exception: a wrong option value typed by the user, refused before anything is queued;
 *   - no thread, no atfork handler, no library but libc: a thread in slurmstepd breaks the setns()
 *     of job containers;
 *   - in slurmd and in prolog/epilog ("job_script") contexts nothing happens at all.
 *
 * In C because spank.h of 22.05 is not clean C++, and SPANK_PLUGIN exports nothing from C++.
 */
#include "spank/plugin.h"

#include <slurm/slurm.h>

SPANK_PLUGIN(phase_telemetry, 1)

static int option_given(int val, const char* value, int remote) {
  (void)val;
  return remote ? sphase_remote_option(value) : sphase_local_option(value);
}

static struct spank_option telemetry_option = {
    .name = (char*)"phase-telemetry",
    .arginfo = (char*)"off|key=value,...",
    .usage = (char*)"record CPU, memory and I/O of each phase of the job, on every node (sphase); "
                    "keys: period=1s, events=PAPI_TOT_INS+PAPI_TOT_CYC, profile=NAME, "
                    "hooks=kokkos+nvtx+itt+preload",
    .has_arg = 2, /* optional */
    .val = 0,
    .cb = option_given,
};

/* For job_submit/phase_resize, which finds the value in the job's request. Here it is only checked.
 */
static int resize_given(int val, const char* value, int remote) {
  (void)val;
  return remote ? 0 : sphase_local_resize(value);
}

static struct spank_option resize_option = {
    .name = (char*)"phase-resize",
    .arginfo = (char*)"off|observe|advise|apply",
    .usage = (char*)"what may be done with what was learned about the job (sphase): nothing, only "
                    "note it, say it, or ask for it; apply,time lowers the time limit too; "
                    "apply,plan begins with the size of the first phase",
    .has_arg = 1, /* required */
    .val = 0,
    .cb = resize_given,
};

static int of_a_job(spank_t spank) {
  (void)spank;
  const spank_context_t context = spank_context();
  return context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE;
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  if (!of_a_job(spank)) return 0;
  if (spank_option_register(spank, &telemetry_option) != ESPANK_SUCCESS) {
    slurm_info("sphase: plugin: cannot register --phase-telemetry");
  }
  if (spank_option_register(spank, &resize_option) != ESPANK_SUCCESS) {
    slurm_info("sphase: plugin: cannot register --phase-resize");
  }
  if (spank_context() == S_CTX_REMOTE) sphase_remote_init(argc, argv);
  return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  if (!of_a_job(spank)) return 0;
  if (spank_context() == S_CTX_REMOTE) sphase_remote_start(spank);
  return 0;
}

int slurm_spank_task_post_fork(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  if (spank_context() == S_CTX_REMOTE) sphase_remote_attach(spank);
  return 0;
}

int slurm_spank_task_init(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  if (spank_context() == S_CTX_REMOTE) sphase_remote_task_init(spank);
  return 0;
}

int slurm_spank_task_exit(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  if (spank_context() == S_CTX_REMOTE) sphase_remote_task_exit(spank);
  return 0;
}

int slurm_spank_exit(spank_t spank, int argc, char* argv[]) {
  (void)spank;
  (void)argc;
  (void)argv;
  if (spank_context() == S_CTX_REMOTE) sphase_remote_goodbye();
  return 0;
}
