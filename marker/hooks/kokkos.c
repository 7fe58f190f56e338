/* SPDX-License-Identifier: MIT
 *
 * Kokkos Tools: KOKKOS_TOOLS_LIBS names this library (KOKKOS_PROFILE_LIBRARY before Kokkos 3.7).
 * Regions and profile sections become phases, events become attributes; kernels are far too many.
 *
 * The interface is that of Kokkos_Profiling_C_Interface.h, version 20240906; Kokkos looks up each
 * name alone, and one that is missing costs it nothing.
 */
#include <stdbool.h>

#include "marker/hooks/hooks.h"

struct Kokkos_Tools_ToolSettings {
  bool requires_global_fencing;
  bool padding[255];
};

SPHASE_HOOK void kokkosp_request_tool_settings(uint32_t version,
                                               struct Kokkos_Tools_ToolSettings* settings);
SPHASE_HOOK void kokkosp_push_profile_region(const char* name);
SPHASE_HOOK void kokkosp_pop_profile_region(void);
SPHASE_HOOK void kokkosp_create_profile_section(const char* name, uint32_t* id);
SPHASE_HOOK void kokkosp_start_profile_section(uint32_t id);
SPHASE_HOOK void kokkosp_stop_profile_section(uint32_t id);
SPHASE_HOOK void kokkosp_destroy_profile_section(uint32_t id);
SPHASE_HOOK void kokkosp_profile_event(const char* name);

/* The default is true: Kokkos would then wait for the device around each of our calls. */
void kokkosp_request_tool_settings(uint32_t version, struct Kokkos_Tools_ToolSettings* settings) {
  (void)version;
  if (settings != NULL) settings->requires_global_fencing = false;
}

static const char kRegions[1]; /* its address owns all regions */

void kokkosp_push_profile_region(const char* name) { sphase_hook_push((uintptr_t)kRegions, name); }
void kokkosp_pop_profile_region(void) { sphase_hook_pop((uintptr_t)kRegions); }

/* Sections that exist; number 0 is that of those that found no room. */
enum { kMostSections = 256 };
static const char* sections[kMostSections];

void kokkosp_create_profile_section(const char* name, uint32_t* id) {
  if (id == NULL) return;
  *id = 0;
  const char* kept = sphase_hook_keep(name);
  for (uint32_t i = 1; kept != NULL && i < kMostSections; ++i) {
    const char* none = NULL;
    if (__atomic_compare_exchange_n(&sections[i], &none, kept, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      *id = i;
      return;
    }
  }
}

static const char* section(uint32_t id) {
  return id < kMostSections ? __atomic_load_n(&sections[id], __ATOMIC_ACQUIRE) : NULL;
}

void kokkosp_start_profile_section(uint32_t id) { sphase_hook_begin(section(id)); }
void kokkosp_stop_profile_section(uint32_t id) { sphase_hook_end(section(id)); }

void kokkosp_destroy_profile_section(uint32_t id) {
  if (id < kMostSections) __atomic_store_n(&sections[id], NULL, __ATOMIC_RELEASE);
}

void kokkosp_profile_event(const char* name) { sphase_hook_event(name); }
