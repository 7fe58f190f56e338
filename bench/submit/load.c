/* Part of ./dev bench submit: submits held batch jobs one after the other from one process, as
 * sbatch would, and prints how long each took. sbatch itself takes 10 ms to start, which would hide
 * what happens in slurmctld.
 *
 *   bench_submit_load COUNT PROFILES SEED [NAME...]      one line of JSON
 *
 * With more than one NAME each job gets one of them at random; "order" in the answer is the number
 * of the name of each job, "by_name" what the jobs of each took.
 */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/resize_option.h"

enum { kVariables = 80, kScriptBytes = 2048, kOptions = 2 };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void fill_script(char* script) {
  size_t used = (size_t)snprintf(script, kScriptBytes, "#!/bin/bash\nset -euo pipefail\n");
  while (used < kScriptBytes - 100) {
    used += (size_t)snprintf(script + used, kScriptBytes - used,
                             "cp -v \"$SLURM_SUBMIT_DIR\"/input.dat \"$SCRATCH/\"\n");
  }
  snprintf(script + used, kScriptBytes - used, "srun ./solver\n");
}

/* What sbatch -N2 --mem=800 --hold sends, but for what slurmctld fills in by itself. */
static void fill_job(job_desc_msg_t* job, char** environment, char** options, char* script,
                     char* folder) {
  slurm_init_job_desc_msg(job);
  job->name = "solver";
  job->user_id = getuid();
  job->group_id = getgid();
  job->min_nodes = job->max_nodes = 2;
  job->min_cpus = 2;
  job->pn_min_memory = 800;
  job->priority = 0;
  job->script = script;
  job->work_dir = folder;
  job->std_out = job->std_err = job->std_in = "/dev/null";
  job->environment = environment;
  job->env_size = kVariables;
  job->spank_job_env = options;
  job->spank_job_env_size = kOptions;
}

/* The job names to choose from. */
struct names {
  char** text;
  int count;
};

struct run {
  int count, failed;
  double all_s;
  double* took_us;
  char* order; /* '0' + index of the name */
};

static void submit_one(struct run* run, job_desc_msg_t* job, int at) {
  submit_response_msg_t* answer = NULL;
  const double before_us = now_us();
  if (slurm_submit_batch_job(job, &answer) != SLURM_SUCCESS) {
    if (run->failed++ == 0) fprintf(stderr, "submit: %s\n", slurm_strerror(slurm_get_errno()));
  }
  run->took_us[at] = now_us() - before_us;
  if (answer != NULL) slurm_free_submit_response_response_msg(answer);
}

static int submit_all(struct run* run, struct names names, int profiles) {
  static char script[kScriptBytes], variables[kVariables][64], profile[256], folder[4096];
  char *environment[kVariables + 1] = {NULL}, *options[kOptions + 1] = {NULL};
  char resize[] = SPHASE_RESIZE_ENV "=apply";
  if (getcwd(folder, sizeof(folder)) == NULL) return -1;
  for (int i = 0; i < kVariables; ++i) {
    snprintf(variables[i], sizeof(variables[i]), "VARIABLE_%d=%040d", i, i);
    environment[i] = variables[i];
  }
  options[0] = resize;
  options[1] = profile;
  fill_script(script);
  const double begun_us = now_us();
  for (int i = 0; i < run->count; ++i) {
    job_desc_msg_t job;
    const int name = rand() % names.count;
    fill_job(&job, environment, options, script, folder);
    job.name = names.text[name];
    run->order[i] = (char)('0' + name);
    snprintf(profile, sizeof(profile), SPHASE_TELEMETRY_ENV "=profile=p%d", rand() % profiles);
    submit_one(run, &job, i);
  }
  run->all_s = (now_us() - begun_us) / 1e6;
  return 0;
}

/* {"p50_us": ..., ...} of the jobs of one name; `sorted` has room for all. */
static void print_name(const struct run* run, const char* text, int name, double* sorted) {
  int n = 0;
  double sum_us = 0;
  for (int i = 0; i < run->count; ++i) {
    if (run->order[i] == '0' + name) sum_us += sorted[n++] = run->took_us[i];
  }
  qsort(sorted, (size_t)n, sizeof(double), compare);
  if (n == 0) sorted[0] = 0;
  printf("\"%s\": {\"count\": %d, \"mean_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f}", text, n,
         n > 0 ? sum_us / n : 0, sorted[n / 2], sorted[n * 99 / 100]);
}

static void print_run(const struct run* run, struct names names, double* sorted) {
  printf("{\"failed\": %d, \"submits_per_s\": %.3f, \"order\": \"%s\", \"by_name\": {", run->failed,
         run->count / run->all_s, run->order);
  for (int name = 0; name < names.count; ++name) {
    if (name > 0) printf(", ");
    print_name(run, names.text[name], name, sorted);
  }
  printf("}}\n");
}

int main(int argc, char** argv) {
  char* usual[] = {"solver"};
  const int count = argc >= 4 ? atoi(argv[1]) : 0, profiles = argc >= 4 ? atoi(argv[2]) : 0;
  if (count <= 0 || profiles <= 0 || argc > 4 + 9) {
    fprintf(stderr, "usage: bench_submit_load COUNT PROFILES SEED [NAME...]\n");
    return 2;
  }
  const struct names given = {argv + 4, argc - 4}, one = {usual, 1};
  const struct names names = given.count > 0 ? given : one;
  struct run run = {.count = count,
                    .took_us = calloc((size_t)count, sizeof(double)),
                    .order = calloc((size_t)count + 1, 1)};
  double* sorted = calloc((size_t)count, sizeof(double));
  int status = 1;
  srand((unsigned)atoi(argv[3]));
  slurm_init(NULL);
  if (run.took_us != NULL && run.order != NULL && sorted != NULL &&
      submit_all(&run, names, profiles) == 0) {
    print_run(&run, names, sorted);
    status = 0;
  }
  slurm_fini();
  free(sorted);
  free(run.order);
  free(run.took_us);
  return status;
}
