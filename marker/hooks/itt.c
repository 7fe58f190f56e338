/* SPDX-License-Identifier: MIT
 *
 * Intel ITT: INTEL_LIBITTNOTIFY64 names this library. A program may hold several static parts of
 * ITT (its own, those of oneTBB, of PyTorch); each calls __itt_api_init with its own table.
 *
 * A task is a phase of its thread; domains nest each on their own. A frame is a phase with the name
 * of its domain, a marker an attribute. Domains and string handles need nothing of us: the static
 * part makes them, and all that is read is the name inside.
 * Layouts: ittapi src/ittnotify/ittnotify_config.h, include/ittnotify.h (UNICODE is Windows').
 */
#include <pthread.h>
#include <string.h>

#include "marker/hooks/hooks.h"

/* Every function that is not ours becomes what the static part has for it without a tool. */
struct api {
  const char* name;
  void** call;
  void* init_call;
  void* null_call;
  int group;
};

struct global {
  unsigned char magic[8];
  unsigned long version_major;
  unsigned long version_minor;
  unsigned long version_build;
  volatile long api_initialized;
  volatile long mutex_initialized;
  volatile long atomic_counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** dll_path;
  struct api* api_list;
};

/* Before it, `api` had no null_call. */
enum { kOldestBuild = 20111111 };
static const unsigned char kMagic[8] = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30};

struct domain {
  volatile int flags; /* 0: disabled */
  const char* name;
};
struct string_handle {
  const char* text;
};
struct id {
  unsigned long long d1, d2, d3;
};

static int is_on(const struct domain* domain) { return domain != NULL && domain->flags != 0; }

static const char* text_of(const struct string_handle* name) {
  return name != NULL ? name->text : NULL;
}

static void task_begin(const struct domain* domain, struct id task, struct id parent,
                       const struct string_handle* name) {
  (void)task;
  (void)parent;
  if (is_on(domain)) sphase_hook_push((uintptr_t)domain, text_of(name));
}

/* Named by an address: not recorded, but its end must find it. */
static void task_begin_fn(const struct domain* domain, struct id task, struct id parent,
                          void* call) {
  (void)call;
  task_begin(domain, task, parent, NULL);
}

static void task_end(const struct domain* domain) {
  if (is_on(domain)) sphase_hook_pop((uintptr_t)domain);
}

static void frame_begin(const struct domain* domain, const struct id* frame) {
  (void)frame;
  if (is_on(domain)) sphase_hook_begin(domain->name);
}

static void frame_end(const struct domain* domain, const struct id* frame) {
  (void)frame;
  if (is_on(domain)) sphase_hook_end(domain->name);
}

static void marker(const struct domain* domain, struct id id, const struct string_handle* name,
                   int scope) {
  (void)id;
  (void)scope;
  if (is_on(domain)) sphase_hook_event(text_of(name));
}

static const struct {
  const char* name;
  void (*call)(void);
} ours[] = {{"__itt_task_begin", (void (*)(void))task_begin},
            {"__itt_task_begin_fn", (void (*)(void))task_begin_fn},
            {"__itt_task_end", (void (*)(void))task_end},
            {"__itt_frame_begin_v3", (void (*)(void))frame_begin},
            {"__itt_frame_end_v3", (void (*)(void))frame_end},
            {"__itt_marker", (void (*)(void))marker}};

static void* call_for(const struct api* api) {
  for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); ++i) {
    if (strcmp(api->name, ours[i].name) == 0) return *(void**)&ours[i].call;
  }
  return api->null_call;
}

SPHASE_HOOK void __itt_api_init(struct global* part, int groups);

/* Called with the part's mutex held, once per part. `groups` are those that its program asked
 * for. */
void __itt_api_init(struct global* part, int groups) {
  if (part == NULL || memcmp(part->magic, kMagic, sizeof(kMagic)) != 0) return;
  if (part->version_build < kOldestBuild || part->api_list == NULL) return;
  for (const struct api* api = part->api_list; api->name != NULL; ++api) {
    *api->call = (api->group & groups) != 0 ? call_for(api) : api->null_call;
  }
}
