/* SPDX-License-Identifier: MIT
 *
 * What the adapters in this folder have in common. An adapter is a library that a programming model
 * loads by itself, because an environment variable names it, and that turns what the program marks
 * there into phases of sphase: nothing is recompiled.
 *
 *   hooks.c    which marker library of this process marks; ranges that are pushed and popped
 *   kokkos.c   KOKKOS_TOOLS_LIBS       libsphase_kokkos.so
 *   nvtx.c     NVTX_INJECTION64_PATH   libsphase_nvtx.so
 *   itt.c      INTEL_LIBITTNOTIFY64    libsphase_itt.so
 *   preload.c  LD_PRELOAD              libsphase_preload.so
 *
 * docs/hooks.md says what of each model is marked, and what is not.
 */
#ifndef SPHASE_MARKER_HOOKS_H
#define SPHASE_MARKER_HOOKS_H

#include <stdint.h>
#include <wchar.h>

#include "marker/internal.h"

/* Exported by an adapter; everything else is hidden. */
#define SPHASE_HOOK __attribute__((visibility("default")))

/* Room for a name as it can be recorded, for one byte more, by which it is seen to be longer, and
 * for NUL. */
#define SPHASE_HOOK_NAME_BYTES (SPHASE_TEXT_BYTES + 2)

/* The marker library that all adapters of this process use: see hooks.c. */
struct sphase_hook_markers {
  int (*begin)(const char* name);
  int (*end)(const char* name);
  void (*attr)(const char* key, const char* value);
};
SPHASE_HIDDEN const struct sphase_hook_markers* sphase_hook_markers(void);

/* A range of this thread that is ended without its name. `owner` is what its end belongs to, such
 * as a domain: ranges of one owner nest, those of different owners need not. Returns how many of
 * the owner's ranges were open before in this thread. */
SPHASE_HIDDEN int sphase_hook_push(uintptr_t owner, const char* name);

/* Ends the owner's innermost range, and with it the phases inside it. Returns how many of the
 * owner's are still open, or -1: none was, and nothing is marked. */
SPHASE_HIDDEN int sphase_hook_pop(uintptr_t owner);

/* A range that ends by its name, maybe in another thread. */
SPHASE_HIDDEN void sphase_hook_begin(const char* name);
SPHASE_HIDDEN void sphase_hook_end(const char* name);

/* Something that happened at this moment: the attribute "event" of the innermost phase. */
SPHASE_HIDDEN void sphase_hook_event(const char* name);

/* A string that is kept for ever, once: equal strings give the same pointer, mostly. "(other)" once
 * there are too many; NULL for NULL. Any thread may call it. */
SPHASE_HIDDEN const char* sphase_hook_keep(const char* text);

/* `text` if sphase_hook_keep() has returned this very pointer, else NULL. Does not look at it. */
SPHASE_HIDDEN const char* sphase_hook_kept(const char* text);

/* Wide characters as UTF-8, cut to what can be recorded. Returns out; NULL for NULL. */
SPHASE_HIDDEN const char* sphase_hook_utf8(const wchar_t* text, char out[SPHASE_HOOK_NAME_BYTES]);

#endif
