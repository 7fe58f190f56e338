/* A program finds an adapter by a variable. That one of the user's is never touched, since it names
 * another tool: where there is any doubt about a variable, nothing is set.
 *
 * Kokkos ends the program if KOKKOS_TOOLS_LIBS and its older name KOKKOS_PROFILE_LIBRARY are both
 * set and differ (Kokkos_Profiling.cpp, initialize). So either of them keeps us out; and in a batch
 * script or an interactive shell, which may still export the other one, it is left unset.
 */
#include "spank/hooks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spank/options.h"

#define PRELOAD "LD_PRELOAD"

enum { kPathMost = 300, kValueMost = 8192 };

static const struct hook {
  unsigned bit;
  const char* file;
  const char* variable;
  const char* older_name; /* of the variable */
} known[] = {
    {kHookKokkos, "libsphase_kokkos.so", "KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY"},
    {kHookNvtx, "libsphase_nvtx.so", "NVTX_INJECTION64_PATH", NULL},
    {kHookItt, "libsphase_itt.so", "INTEL_LIBITTNOTIFY64", NULL},
    {kHookPreload, "libsphase_preload.so", PRELOAD, NULL},
};

static int path_of(const struct hook* hook, const char* folder, char out[kPathMost]) {
  return snprintf(out, kPathMost, "%s/%s", folder, hook->file) < kPathMost;
}

static int is_unset(spank_t spank, const char* variable) {
  char value[1];
  return variable == NULL ||
         spank_getenv(spank, variable, value, sizeof(value)) == ESPANK_ENV_NOEXIST;
}

/* After the user's own: theirs come first in the search for a function. */
static void append_preload(spank_t spank, const char* path) {
  char value[kValueMost];
  const spank_err_t found = spank_getenv(spank, PRELOAD, value, sizeof(value));
  if (found == ESPANK_ENV_NOEXIST || (found == ESPANK_SUCCESS && value[0] == '\0')) {
    spank_setenv(spank, PRELOAD, path, 1);
    return;
  }
  const size_t used = strnlen(value, sizeof(value));
  if (found != ESPANK_SUCCESS || used + 1 + strlen(path) + 1 > sizeof(value)) return;
  snprintf(value + used, sizeof(value) - used, ":%s", path);
  spank_setenv(spank, PRELOAD, value, 1);
}

void sphase_hooks_set(spank_t spank, const char* folder, unsigned hooks, int direct) {
  char path[kPathMost];
  if (!direct) hooks &= ~(unsigned)kHookKokkos;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    const struct hook* hook = &known[i];
    if ((hooks & hook->bit) == 0 || !path_of(hook, folder, path)) continue;
    if (access(path, R_OK) != 0) continue;
    if (hook->bit == kHookPreload) {
      append_preload(spank, path);
    } else if (is_unset(spank, hook->variable) && is_unset(spank, hook->older_name)) {
      spank_setenv(spank, hook->variable, path, 0);
    }
  }
}

void sphase_hooks_clear(spank_t spank, const char* folder) {
  char path[kPathMost];
  char value[kValueMost];
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    const struct hook* hook = &known[i];
    if (!path_of(hook, folder, path)) continue;
    if (spank_getenv(spank, hook->variable, value, sizeof(value)) != ESPANK_SUCCESS) continue;
    const size_t length = strlen(path);
    const size_t used = strnlen(value, sizeof(value));
    if (used < length || strcmp(value + used - length, path) != 0) continue;
    if (used == length) {
      spank_unsetenv(spank, hook->variable);
    } else if (hook->bit == kHookPreload && value[used - length - 1] == ':') {
      value[used - length - 1] = '\0';
      spank_setenv(spank, PRELOAD, value, 1);
    }
  }
}
