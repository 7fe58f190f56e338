/* SPDX-License-Identifier: MIT
 *
 * For LD_PRELOAD, where a job asks for it: marks that have no hook of their own. Each function does
 * what its name says for sphase, then calls the real one, where there is one, and returns what that
 * returned.
 *
 *   MPI_Pcontrol           level >= 5 begins the phase pcontrol-LEVEL, its negative ends it. Where
 *                          SPHASE_PCONTROL_NAMES=1: (1, "name") begins, (-1, "name") ends
 *   cali_begin_region …    Caliper's C functions: region, phase, comm_region
 *   likwid_marker*Region, PAPI_hl_region_*
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "marker/hooks/hooks.h"

#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__) && defined(__GLIBC__)
__asm__(".symver dladdr,dladdr@GLIBC_2.17");
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
#endif

/* The function that `caller` would have reached without us: the next one of that name, or, where
 * the caller's libraries were loaded for itself only (Python), the one among them. */
static void* look_up(const char* name, void* caller) {
  Dl_info where;
  void* found = dlsym(RTLD_NEXT, name);
  if (found != NULL || !dladdr(caller, &where) || where.dli_fname == NULL) return found;
  void* library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library != NULL ? dlsym(library, name) : NULL;
}

/* Of the type of `cache`, which keeps it. Looked up again as long as there is none. */
#define REAL(cache, name, caller)                                  \
  do {                                                             \
    if (__atomic_load_n(&(cache), __ATOMIC_RELAXED) == NULL) {     \
      void* found = look_up(name, caller);                         \
      __atomic_store_n((void**)&(cache), found, __ATOMIC_RELAXED); \
    }                                                              \
  } while (0)

#define CALLER() __builtin_return_address(0)

/* --- MPI_Pcontrol ------------------------------------------------------------------------------
 */

enum { kFirstRegion = 5 }; /* below: 0 off, 1 on, 2 flush, and what tools made of them */

static __thread int in_pcontrol; /* the Fortran function of some MPIs calls the C one */

static int takes_names(void) {
  static int known; /* 1: no, 2: yes */
  int value = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (value == 0) {
    const char* wanted = secure_getenv("SPHASE_PCONTROL_NAMES");
    value = wanted != NULL && strcmp(wanted, "1") == 0 ? 2 : 1;
    __atomic_store_n(&known, value, __ATOMIC_RELAXED);
  }
  return value == 2;
}

/* A pointer that may be none at all: the argument that nobody passed. The kernel reads it for us.
 * 1: it is text: printable ASCII alone, to tell it from what else may lie there. */
static int read_name(const char* text, char out[SPHASE_HOOK_NAME_BYTES]) {
  const size_t most = SPHASE_HOOK_NAME_BYTES - 1;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t left = page - (uintptr_t)text % page; /* the next page may not be there */
  const struct iovec to = {out, most};
  const struct iovec from[2] = {{(void*)text, left < most ? left : most},
                                {(char*)text + left, left < most ? most - left : 0}};
  const ssize_t got = process_vm_readv(getpid(), &to, 1, from, left < most ? 2 : 1, 0);
  if (got <= 0) return 0;
  const size_t length = strnlen(out, (size_t)got);
  if (length == 0 || (length == (size_t)got && length < most)) return 0;
  out[length] = '\0';
  for (const char* c = out; *c != '\0'; ++c) {
    if (*c < 0x20 || *c > 0x7e) return 0;
  }
  return 1;
}

static void mark_level(int level) {
  char name[32];
  if (level > -kFirstRegion && level < kFirstRegion) return;
  snprintf(name, sizeof(name), "pcontrol-%u", level < 0 ? 0u - (unsigned)level : (unsigned)level);
  if (level > 0) {
    sphase_hook_begin(name);
  } else {
    sphase_hook_end(name);
  }
}

static void mark_name(int level, const char* text) {
  char name[SPHASE_HOOK_NAME_BYTES];
  if (!read_name(text, name)) return;
  if (level > 0) {
    sphase_hook_begin(name);
  } else {
    sphase_hook_end(name);
  }
}

/* What else was passed is handed on unseen: another tool may know what to do with it. Reading words
 * that were not passed is harmless in the calling conventions of Linux; what is in them is not
 * followed. */
SPHASE_HOOK int MPI_Pcontrol(const int level, ...);
int MPI_Pcontrol(const int level, ...) {
  static int (*real)(const int, ...);
  va_list arguments;
  va_start(arguments, level);
  void* const first = va_arg(arguments, void*);
  void* const second = va_arg(arguments, void*);
  void* const third = va_arg(arguments, void*);
  va_end(arguments);
  if (!in_pcontrol) {
    if ((level == 1 || level == -1) && takes_names()) mark_name(level, first);
    mark_level(level);
  }
  REAL(real, "MPI_Pcontrol", CALLER());
  REAL(real, "PMPI_Pcontrol", CALLER());
  return real != NULL ? real(level, first, second, third) : 0;
}

/* Fortran has no ierror here, and no text. */
SPHASE_HOOK void mpi_pcontrol_(const int* level);
void mpi_pcontrol_(const int* level) {
  static void (*real)(const int*);
  if (level != NULL) mark_level(*level);
  REAL(real, "mpi_pcontrol_", CALLER());
  ++in_pcontrol;
  if (real != NULL) real(level);
  --in_pcontrol;
}

/* --- What begins and ends by name --------------------------------------------------------------
 */

/* A range begins after, and ends before, what the real function does for it. */
#define VOID_BEGIN(name)              \
  SPHASE_HOOK void name(const char*); \
  void name(const char* region) {     \
    static void (*real)(const char*); \
    REAL(real, #name, CALLER());      \
    if (real != NULL) real(region);   \
    sphase_hook_begin(region);        \
  }
#define VOID_END(name)                \
  SPHASE_HOOK void name(const char*); \
  void name(const char* region) {     \
    static void (*real)(const char*); \
    sphase_hook_end(region);          \
    REAL(real, #name, CALLER());      \
    if (real != NULL) real(region);   \
  }
#define INT_BEGIN(name)                                 \
  SPHASE_HOOK int name(const char*);                    \
  int name(const char* region) {                        \
    static int (*real)(const char*);                    \
    REAL(real, #name, CALLER());                        \
    const int result = real != NULL ? real(region) : 0; \
    sphase_hook_begin(region);                          \
    return result;                                      \
  }
#define INT_END(name)                       \
  SPHASE_HOOK int name(const char*);        \
  int name(const char* region) {            \
    static int (*real)(const char*);        \
    sphase_hook_end(region);                \
    REAL(real, #name, CALLER());            \
    return real != NULL ? real(region) : 0; \
  }

VOID_BEGIN(cali_begin_region)
VOID_END(cali_end_region)
VOID_BEGIN(cali_begin_phase)
VOID_END(cali_end_phase)
VOID_BEGIN(cali_begin_comm_region)
VOID_END(cali_end_comm_region)
INT_BEGIN(likwid_markerStartRegion)
INT_END(likwid_markerStopRegion)
INT_BEGIN(PAPI_hl_region_begin)
INT_END(PAPI_hl_region_end)
