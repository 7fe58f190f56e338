/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "marker/internal.h"

static int is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }
static int is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }
static int is_lead(unsigned char c) { return (c & 0xc0) == 0xc0; }

/* Where to cut s, which has more than `length` bytes, so that no UTF-8 character is split. Bytes
 * that are not UTF-8 are cut anywhere. */
static size_t cut_before(const unsigned char* s, size_t length) {
  size_t cut = length;
  while (cut > 0 && length - cut < 3 && is_continuation(s[cut])) --cut;
  return is_lead(s[cut]) ? cut : length;
}

/* Appends as much of s as there is room for below `limit`, with '/' replaced by `slash`. */
static void append(struct sphase_text* text, size_t limit, const char* s, char slash) {
  const unsigned char* in = (const unsigned char*)s;
  char* out = text->bytes + text->length;
  const size_t room = limit - text->length;
  uint32_t hash = text->hash;
  size_t n = 0;
  for (; n < room && in[n] != 0; ++n) {
    unsigned char c = in[n];
    if (is_control(c)) c = '?';
    if (c == '/') c = (unsigned char)slash;
    out[n] = (char)c;
    hash = (hash << 5 | hash >> 27) ^ c;
  }
  if (n == room && in[n] != 0) {
    text->flags |= SPHASE_FLAG_TRUNCATED;
    const size_t cut = cut_before(in, n);
    memset(out + cut, 0, n - cut);
    n = cut;
  }
  text->hash = hash;
  text->length = (uint8_t)(text->length + n);
}

static int text_from(struct sphase_text* text, const char* name, size_t limit, char slash) {
  if (name == NULL || name[0] == '\0') return 0;
  memset(text, 0, sizeof *text);
  text->hash = 1;
  append(text, limit, name, slash);
  if (text->hash == 0) text->hash = 1; /* 0 means "no name" */
  return 1;
}

int sphase_text_phase(struct sphase_text* text, const char* name) {
  return text_from(text, name, SPHASE_TEXT_BYTES, '_');
}

int sphase_text_label(struct sphase_text* text, const char* name) {
  return text_from(text, name, SPHASE_TEXT_BYTES, '/');
}

int sphase_text_pair(struct sphase_text* text, const char* key, const char* value) {
  if (!text_from(text, key, SPHASE_TEXT_BYTES - 1, '/')) return 0;
  ++text->length; /* the NUL between them */
  if (value != NULL) append(text, SPHASE_TEXT_BYTES, value, '/');
  return 1;
}
