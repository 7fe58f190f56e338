#include "spank/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIGHT_FORM                                                                               \
  "use --phase-telemetry[=off] or --phase-telemetry=period=1s,events=PAPI_TOT_INS+PAPI_TOT_CYC," \
  "profile=NAME"

/* Copies a value of 1..size-1 characters out of `allowed`-class characters. */
static int copy_word(const char* value, const char* also, char* out, size_t size) {
  const size_t length = strlen(value);
  if (length == 0 || length >= size) return -1;
  for (size_t i = 0; i < length; ++i) {
    const unsigned char c = (unsigned char)value[i];
    if (!isalnum(c) && strchr(also, c) == NULL) return -1;
  }
  memcpy(out, value, length + 1);
  return 0;
}

/* "500ms", "1s", "2m"; a bare number is refused, since nobody can know its unit. */
static int parse_period(const char* value, int* out_ms) {
  char* unit = NULL;
  if (!isdigit((unsigned char)value[0])) return -1;
  const long number = strtol(value, &unit, 10);
  long scale = 0;
  if (strcmp(unit, "ms") == 0) scale = 1;
  if (strcmp(unit, "s") == 0) scale = 1000;
  if (strcmp(unit, "m") == 0) scale = 60000;
  if (scale == 0 || number <= 0 || number > kPeriodMaxMs) return -1;
  if (number * scale < kPeriodMinMs || number * scale > kPeriodMaxMs) return -1;
  *out_ms = (int)(number * scale);
  return 0;
}

/* "64M", "1G" (powers of 1024). */
static int parse_size(const char* value, int64_t* out) {
  char* unit = NULL;
  if (!isdigit((unsigned char)value[0])) return -1;
  const long long number = strtoll(value, &unit, 10);
  int64_t scale = 0;
  if (strcmp(unit, "M") == 0) scale = INT64_C(1) << 20;
  if (strcmp(unit, "G") == 0) scale = INT64_C(1) << 30;
  if (scale == 0 || number <= 0 || number > 1000000) return -1;
  if (number * scale < ((int64_t)kMaxBytesMinMiB << 20)) return -1;
  *out = number * scale;
  return 0;
}

/* "off", or names of hooks joined by `joint`. */
static int parse_hooks(const char* value, char joint, unsigned known, unsigned* out) {
  static const struct {
    const char* name;
    unsigned bit;
  } hooks[] = {
      {"kokkos", kHookKokkos}, {"nvtx", kHookNvtx}, {"itt", kHookItt}, {"preload", kHookPreload}};
  unsigned all = 0;
  while (strcmp(value, "off") != 0) {
    const char* end = strchr(value, joint);
    const size_t length = end != NULL ? (size_t)(end - value) : strlen(value);
    unsigned bit = 0;
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); ++i) {
      if (strlen(hooks[i].name) == length && strncmp(value, hooks[i].name, length) == 0) {
        bit = hooks[i].bit & known;
      }
    }
    if (bit == 0) return -1;
    all |= bit;
    if (end == NULL) break;
    value = end + 1;
    if (strcmp(value, "off") == 0) return -1;
  }
  *out = all;
  return 0;
}

/* What the user typed is quoted in a message of one line. */
static void keep_to_one_line(char* why) {
  for (char* c = why; *c != '\0'; ++c) {
    if (iscntrl((unsigned char)*c)) *c = '?';
  }
}

static int job_option(const char* key, const char* value, struct sphase_job_options* out, char* why,
                      size_t why_size) {
  if (strcmp(key, "period") == 0) {
    if (parse_period(value, &out->period_ms) == 0) return 0;
    snprintf(why, why_size,
             "--phase-telemetry: period=%.40s is not a time from 10ms to 60m; use period=500ms, "
             "period=1s or period=2m",
             value);
    return -1;
  }
  if (strcmp(key, "events") == 0) {
    if (copy_word(value, "_+:.-=", out->events, sizeof(out->events)) == 0) return 0;
    snprintf(why, why_size,
             "--phase-telemetry: events=%.40s is not a list of PAPI events; use "
             "events=PAPI_TOT_INS+PAPI_TOT_CYC (at most 127 characters) or events=off",
             value);
    return -1;
  }
  if (strcmp(key, "profile") == 0) {
    if (copy_word(value, "_.-/", out->profile, sizeof(out->profile)) == 0) return 0;
    snprintf(why, why_size,
             "--phase-telemetry: profile=%.40s is not a name; use letters, digits and _ . - / "
             "(at most 127 characters)",
             value);
    return -1;
  }
  if (strcmp(key, "hooks") == 0) {
    if (parse_hooks(value, '+', kHookKokkos | kHookNvtx | kHookItt | kHookPreload, &out->hooks) ==
        0) {
      out->hooks_given = 1;
      return 0;
    }
    snprintf(why, why_size,
             "--phase-telemetry: hooks=%.40s is not known; use hooks=off or some of "
             "hooks=kokkos+nvtx+itt+preload",
             value);
    return -1;
  }
  snprintf(why, why_size, "--phase-telemetry: unknown key \"%.40s\"; " RIGHT_FORM, key);
  return -1;
}

int sphase_job_options_parse(const char* text, struct sphase_job_options* out, char* why,
                             size_t why_size) {
  char copy[512];
  char* rest = copy;

  memset(out, 0, sizeof(*out));
  out->on = 1;
  /* Slurm 22.05 hands an option without argument on as the string "(null)" to steps inside sbatch,
   * and as "" to the batch step. */
  if (text == NULL || text[0] == '\0' || strcmp(text, "(null)") == 0 || strcmp(text, "on") == 0) {
    return 0;
  }
  if (strcmp(text, "off") == 0) {
    out->on = 0;
    return 0;
  }
  if (strlen(text) >= sizeof(copy)) {
    snprintf(why, why_size,
             "--phase-telemetry: the value is longer than 511 characters; " RIGHT_FORM);
    return -1;
  }
  memcpy(copy, text, strlen(text) + 1);
  while (rest != NULL) {
    char* pair = strsep(&rest, ",");
    char* value = strchr(pair, '=');
    if (value == NULL) {
      snprintf(why, why_size, "--phase-telemetry: \"%.40s\" is not key=value; " RIGHT_FORM, pair);
      keep_to_one_line(why);
      return -1;
    }
    *value++ = '\0';
    if (job_option(pair, value, out, why, why_size) != 0) {
      keep_to_one_line(why);
      return -1;
    }
  }
  return 0;
}

void sphase_site_options_default(struct sphase_site_options* out) {
  memset(out, 0, sizeof(*out));
  out->period_ms = kPeriodDefaultMs;
  out->max_bytes = (int64_t)kMaxBytesDefaultMiB << 20;
  snprintf(out->node_db, sizeof(out->node_db), "%s", "/var/spool/sphase/%n/node.db");
  snprintf(out->run_dir, sizeof(out->run_dir), "%s", "/run/sphase");
  snprintf(out->recorder, sizeof(out->recorder), "%s", "/usr/libexec/sphase/sphase-recorder");
  /* Not Kokkos: it ends a program whose wrapper script exports its other variable, and prints
   * where a container lacks the adapter. Who chooses it can know his programs. */
  out->hooks = kHookNvtx | kHookItt;
  snprintf(out->hooks_dir, sizeof(out->hooks_dir), "%s", "/usr/libexec/sphase/hooks");
}

static int copy_path(const char* value, char* out, size_t size) {
  const size_t length = strlen(value);
  if (value[0] != '/' || length >= size) return -1;
  memcpy(out, value, length + 1);
  return 0;
}

static int site_default(const char* value, struct sphase_site_options* out) {
  if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0) return -1;
  out->default_on = strcmp(value, "on") == 0;
  return 0;
}

int sphase_site_option_parse(const char* argument, struct sphase_site_options* out, char* why,
                             size_t why_size) {
  const char* equals = strchr(argument, '=');
  const char* right = NULL;
  int failed = 0;

  if (equals != NULL) {
    const size_t key = (size_t)(equals - argument);
    const char* value = equals + 1;
#define IS(name) (key == strlen(name) && strncmp(argument, name, key) == 0)
    if (IS("default")) {
      failed = site_default(value, out);
      right = "default=off or default=on";
    } else if (IS("period")) {
      failed = parse_period(value, &out->period_ms);
      right = "period=1s, from 10ms to 60m";
    } else if (IS("events")) {
      failed = copy_word(value, "_+:.-=", out->events, sizeof(out->events));
      right = "events=off or events=PAPI_TOT_INS+PAPI_TOT_CYC";
    } else if (IS("max_bytes")) {
      failed = parse_size(value, &out->max_bytes);
      right = "max_bytes=1G, at least 16M";
    } else if (IS("node_db")) {
      failed = copy_path(value, out->node_db, sizeof(out->node_db));
      right = "node_db=/var/spool/sphase/%n/node.db, an absolute path";
    } else if (IS("run_dir")) {
      failed = copy_path(value, out->run_dir, sizeof(out->run_dir));
      right = "run_dir=/run/sphase, an absolute path of at most 79 characters";
    } else if (IS("recorder")) {
      failed = copy_path(value, out->recorder, sizeof(out->recorder));
      right = "recorder=/usr/libexec/sphase/sphase-recorder, an absolute path";
    } else if (IS("hooks")) {
      failed = parse_hooks(value, ',', kHookKokkos | kHookNvtx | kHookItt, &out->hooks);
      right = "hooks=off or some of hooks=kokkos,nvtx,itt";
    } else if (IS("hooks_dir")) {
      failed = copy_path(value, out->hooks_dir, sizeof(out->hooks_dir));
      right = "hooks_dir=/usr/libexec/sphase/hooks, an absolute path";
    }
#undef IS
  }
  if (right == NULL) {
    snprintf(why, why_size,
             "plugstack.conf: unknown argument \"%.60s\" is ignored; known are default= period= "
             "events= max_bytes= node_db= run_dir= recorder= hooks= hooks_dir=",
             argument);
    return -1;
  }
  if (failed != 0) {
    snprintf(why, why_size, "plugstack.conf: \"%.60s\" is ignored; use %s", argument, right);
    return -1;
  }
  return 0;
}

int sphase_expand_node(const char* pattern, const char* node, char* out, size_t out_size) {
  size_t used = 0;
  for (const char* c = pattern; *c != '\0'; ++c) {
    const char* piece = c;
    size_t length = 1;
    if (c[0] == '%' && c[1] == 'n') {
      piece = node;
      length = strlen(node);
      ++c;
    } else if (c[0] == '%' && c[1] == '%') {
      ++c;
    }
    if (used + length + 1 > out_size) return -1;
    memcpy(out + used, piece, length);
    used += length;
  }
  if (used + 1 > out_size) return -1;
  out[used] = '\0';
  return 0;
}
