#include "common/resize_option.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define RIGHT_FORM                                                                         \
  "use --phase-resize=off, observe, advise or apply; after it may stand ,time (lower the " \
  "time limit too) and ,plan (the job resizes itself)"

static int is_word(const char* text, size_t size, const char* word) {
  return size == strlen(word) && strncmp(text, word, size) == 0;
}

static int parse_mode(const char* text, size_t size) {
  static const char* const words[] = {"off", "observe", "advise", "apply"};
  for (int mode = 0; mode < 4; ++mode) {
    if (is_word(text, size, words[mode])) return mode;
  }
  return SPHASE_RESIZE_UNSET;
}

static int parse_word(const char* text, size_t size, struct sphase_resize_option* out) {
  if (is_word(text, size, "time")) {
    out->time = 1;
  } else if (is_word(text, size, "plan")) {
    out->plan = 1;
  } else {
    return -1;
  }
  return 0;
}

int sphase_resize_option_parse(const char* text, struct sphase_resize_option* out, char* why,
                               size_t why_size) {
  struct sphase_resize_option parsed = {SPHASE_RESIZE_UNSET, 0, 0};
  const char* at = text;
  int wrong = 0;

  while (text != NULL && !wrong) {
    const size_t size = strcspn(at, ",");
    if (at == text) {
      parsed.mode = parse_mode(at, size);
      wrong = parsed.mode == SPHASE_RESIZE_UNSET;
    } else {
      wrong = parse_word(at, size, &parsed) != 0;
    }
    if (at[size] == '\0') break;
    at += size + 1;
  }
  out->mode = SPHASE_RESIZE_UNSET;
  out->time = out->plan = 0;
  if (text != NULL && !wrong) {
    *out = parsed;
    return 0;
  }
  snprintf(why, why_size, "--phase-resize=%.40s is not known; " RIGHT_FORM,
           text != NULL ? text : "");
  for (char* c = why; *c != '\0'; ++c) {
    if (iscntrl((unsigned char)*c)) *c = '?';
  }
  return -1;
}
