/* SPDX-License-Identifier: MIT
 *
 * One process, one client. The recorder keeps a stack of phases per client and thread, so the
 * phases of a program that links libsphase.so and is hooked by Kokkos and NVTX nest only if all of
 * them mark by the same copy of the marker library. Which one that is, is found out at the first
 * marker of any adapter:
 *
 *   1. the one that the program's own calls reach (dlsym);
 *   2. a libsphase.so.1 that is loaded, even if not for all to see (Python), or can be (dlopen);
 *   3. in a container without one, the copy inside the first adapter that marks.
 *
 * Adapters agree by a pointer that exists once per process: a GNU unique symbol, which the dynamic
 * linker binds to the same memory whatever RTLD_LOCAL says.
 */
#include "marker/hooks/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "marker/sphase.h"

/* glibc 2.34 moved these to libc and gave them a new version; the old one is still there. */
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__) && defined(__GLIBC__)
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

#if UINTPTR_MAX > UINT32_MAX
#define POINTER_BYTES "8"
#else
#define POINTER_BYTES "4"
#endif

/* C has no way to say STB_GNU_UNIQUE. */
__asm__(
    ".pushsection .bss\n"
    ".balign " POINTER_BYTES
    "\n"
    ".globl sphase_hook_markers_1\n"
    ".type sphase_hook_markers_1, %gnu_unique_object\n"
    ".size sphase_hook_markers_1, " POINTER_BYTES
    "\n"
    "sphase_hook_markers_1: .zero " POINTER_BYTES
    "\n"
    ".popsection\n");
extern SPHASE_HOOK const struct sphase_hook_markers* sphase_hook_markers_1;

static struct sphase_hook_markers found;
static const struct sphase_hook_markers own = {sphase_begin, sphase_end, sphase_attr};

/* 1: all functions are in `where`. */
static int look_in(void* where, struct sphase_hook_markers* out) {
  *(void**)&out->begin = dlsym(where, "sphase_begin");
  *(void**)&out->end = dlsym(where, "sphase_end");
  *(void**)&out->attr = dlsym(where, "sphase_attr");
  return out->begin != NULL && out->end != NULL && out->attr != NULL;
}

/* Several threads may do this at once: they find the same. */
static __attribute__((noinline)) const struct sphase_hook_markers* find_markers(void) {
  const int saved = errno;
  const struct sphase_hook_markers* markers = &own;
  struct sphase_hook_markers other;
  void* library = NULL;
  if (look_in(RTLD_DEFAULT, &other) ||
      ((library = dlopen("libsphase.so.1", RTLD_NOW | RTLD_LOCAL)) != NULL &&
       look_in(library, &other))) {
    __atomic_store_n(&found.begin, other.begin, __ATOMIC_RELAXED);
    __atomic_store_n(&found.end, other.end, __ATOMIC_RELAXED);
    __atomic_store_n(&found.attr, other.attr, __ATOMIC_RELAXED);
    markers = &found;
  }
  const struct sphase_hook_markers* first = NULL;
  if (!__atomic_compare_exchange_n(&sphase_hook_markers_1, &first, markers, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    markers = first;
  }
  errno = saved;
  return markers;
}

const struct sphase_hook_markers* sphase_hook_markers(void) {
  const struct sphase_hook_markers* markers =
      __atomic_load_n(&sphase_hook_markers_1, __ATOMIC_ACQUIRE);
  return SPHASE_LIKELY(markers != NULL) ? markers : find_markers();
}

/* --- Ranges that are pushed and popped ---------------------------------------------------------
 */

enum { kMostRanges = SPHASE_MAX_DEPTH + 8, kOver = -1 };

struct range {
  uintptr_t owner;
  int level; /* phases that were open before its own; kOver: it has none, or none any more */
  char name[SPHASE_HOOK_NAME_BYTES];
};

/* Not sphase_self: that is of this adapter's copy. 4 kB, which a thread has once it pushes. */
static __thread struct {
  int count;
  int beyond; /* pushed while there was no room: not marked, only counted */
  struct range ranges[kMostRanges];
} open_ranges;

/* Only `level` phases are open now: the ranges above have ended with an outer one, or by fork. */
static void forget_above(int level) {
  for (int i = open_ranges.count; i-- > 0;) {
    if (open_ranges.ranges[i].level >= level) open_ranges.ranges[i].level = kOver;
  }
}

static int count_of(uintptr_t owner) {
  int count = open_ranges.beyond;
  for (int i = 0; i < open_ranges.count; ++i) count += open_ranges.ranges[i].owner == owner;
  return count;
}

int sphase_hook_push(uintptr_t owner, const char* name) {
  const int before = count_of(owner);
  if (open_ranges.count == kMostRanges) {
    ++open_ranges.beyond;
    return before;
  }
  int level = kOver;
  if (name != NULL && name[0] != '\0') {
    level = sphase_hook_markers()->begin(name);
    forget_above(level);
  }
  struct range* range = &open_ranges.ranges[open_ranges.count++];
  range->owner = owner;
  range->level = level;
  const size_t length = level == kOver ? 0 : strnlen(name, sizeof(range->name) - 1);
  memcpy(range->name, name != NULL ? name : "", length);
  range->name[length] = '\0';
  return before;
}

int sphase_hook_pop(uintptr_t owner) {
  if (open_ranges.beyond > 0) {
    --open_ranges.beyond;
    return count_of(owner);
  }
  int at = open_ranges.count - 1;
  while (at >= 0 && open_ranges.ranges[at].owner != owner) --at;
  if (at < 0) return -1;
  struct range* range = &open_ranges.ranges[at];
  if (range->level != kOver) forget_above(sphase_hook_markers()->end(range->name));
  --open_ranges.count;
  memmove(range, range + 1, (size_t)(open_ranges.count - at) * sizeof(*range));
  return count_of(owner);
}

/* --- The rest ----------------------------------------------------------------------------------
 */

void sphase_hook_begin(const char* name) {
  if (name != NULL && name[0] != '\0') forget_above(sphase_hook_markers()->begin(name));
}

/* A name is needed: without one the innermost phase would end, whoever's it is. */
void sphase_hook_end(const char* name) {
  if (name != NULL && name[0] != '\0') forget_above(sphase_hook_markers()->end(name));
}

void sphase_hook_event(const char* name) {
  if (name != NULL) sphase_hook_markers()->attr("event", name);
}

enum { kMostKept = 10000 };

static struct kept {
  struct kept* next;
  char text[];
} * kept_strings;
static int kept_count;
static const char kOther[] = "(other)";

const char* sphase_hook_kept(const char* text) {
  const struct kept* kept = __atomic_load_n(&kept_strings, __ATOMIC_ACQUIRE);
  while (kept != NULL && kept->text != text) kept = kept->next;
  return kept != NULL || text == kOther ? text : NULL;
}

const char* sphase_hook_keep(const char* text) {
  if (text == NULL) return NULL;
  const size_t length = strnlen(text, SPHASE_HOOK_NAME_BYTES - 1);
  struct kept* first = __atomic_load_n(&kept_strings, __ATOMIC_ACQUIRE);
  for (const struct kept* kept = first; kept != NULL; kept = kept->next) {
    if (strncmp(kept->text, text, length) == 0 && kept->text[length] == '\0') return kept->text;
  }
  if (__atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED) > kMostKept) {
    __atomic_store_n(&kept_count, kMostKept, __ATOMIC_RELAXED);
    return kOther;
  }
  struct kept* fresh = malloc(sizeof(*fresh) + length + 1);
  if (fresh == NULL) return kOther;
  memcpy(fresh->text, text, length);
  fresh->text[length] = '\0';
  fresh->next = first;
  while (!__atomic_compare_exchange_n(&kept_strings, &fresh->next, fresh, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
  }
  return fresh->text;
}

static size_t put_utf8(uint32_t c, char* out) {
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) c = '?';
  const size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(length == 1 ? c : ((0xf0u << (4 - length)) & 0xff) | c);
  return length;
}

const char* sphase_hook_utf8(const wchar_t* text, char out[SPHASE_HOOK_NAME_BYTES]) {
  if (text == NULL) return NULL;
  size_t used = 0;
  char bytes[4];
  for (; *text != L'\0'; ++text) {
    const size_t length = put_utf8((uint32_t)*text, bytes);
    if (used + length >= SPHASE_HOOK_NAME_BYTES) break;
    memcpy(out + used, bytes, length);
    used += length;
  }
  out[used] = '\0';
  return out;
}
