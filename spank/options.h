/* The value of --phase-telemetry, and the arguments of the plugstack line.
 *
 * Plain C without allocation, so that it can run in srun, sbatch, salloc and slurmstepd alike and
 * be tested (and fuzzed) outside of them.
 */
#ifndef SPHASE_SPANK_OPTIONS_H
#define SPHASE_SPANK_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  kPeriodMinMs = 10,
  kPeriodMaxMs = 3600000,
  kPeriodDefaultMs = 1000,
  kMaxBytesMinMiB = 16,
  kMaxBytesDefaultMiB = 1024
};

/* The adapters of marker/hooks, as bits. */
enum sphase_hook { kHookKokkos = 1, kHookNvtx = 2, kHookItt = 4, kHookPreload = 8 };

/* --phase-telemetry[=off|on|key=value,…] as one job asked for it. */
struct sphase_job_options {
  int on;            /* 0: --phase-telemetry=off */
  int period_ms;     /* 0: not given, the site's default holds */
  char events[128];  /* PAPI events joined by '+', "off" = none, "" = not given */
  char profile[128]; /* "" = not given */
  int hooks_given;
  unsigned hooks; /* if given: enum sphase_hook, 0 = hooks=off */
};

/* plugstack.conf arguments: the site's defaults. */
struct sphase_site_options {
  int default_on;      /* default=on|off */
  int period_ms;       /* period= */
  char events[128];    /* events= likewise; "" = the usual ones (papi_probe.h) */
  int64_t max_bytes;   /* max_bytes= cap of node.db */
  char node_db[256];   /* node_db= with %n for the node's name */
  char run_dir[80];    /* run_dir= sockets and notes; short, for sun_path */
  char recorder[256];  /* recorder= path of sphase-recorder */
  unsigned hooks;      /* hooks= enum sphase_hook without kHookPreload, which a job must ask for */
  char hooks_dir[256]; /* hooks_dir= where the adapters are */
};

/* Parses `text` (NULL, "" and "(null)" mean "on"). Returns 0, or -1 with one line in `why` that
 * says what is wrong and what would be right. */
int sphase_job_options_parse(const char* text, struct sphase_job_options* out, char* why,
                             size_t why_size);

void sphase_site_options_default(struct sphase_site_options* out);

/* One KEY=VALUE of the plugstack line. Returns 0; or -1 with a line in `why`, and the default kept:
 * a slip in plugstack.conf must not take telemetry, let alone jobs, down with it. */
int sphase_site_option_parse(const char* argument, struct sphase_site_options* out, char* why,
                             size_t why_size);

/* Copies `pattern` to `out` with %n replaced by `node` and %% by %. -1 if it does not fit. */
int sphase_expand_node(const char* pattern, const char* node, char* out, size_t out_size);

#ifdef __cplusplus
}
#endif

#endif
