/* SPDX-License-Identifier: MIT
 *
 * NVTX 3: NVTX_INJECTION64_PATH names this library. A program may hold several copies of NVTX,
 * which is headers only; each calls InitializeInjectionNvtx2 and has its own tables.
 *
 * A push is a phase of its thread; domains nest each on their own, as NVTX has it. A started range
 * (nvtxRangeStart) is a phase of the thread that starts it and ends by its name. A mark is an
 * attribute. Numbers and layouts: NVTX c/include/nvtx3/nvtxDetail/nvtxTypes.h, nvToolsExt.h.
 */
#include <stddef.h>

#include "marker/hooks/hooks.h"

typedef void (*function)(void);
typedef function** function_table; /* of pointers to the pointers that the program calls through */

enum { kEtidCallbacks = 1 };
enum { kModuleCore = 1, kModuleCore2 = 5 };
enum core {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop
};
enum core2 {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13
};

struct callbacks {
  size_t struct_size;
  int (*get_module_function_table)(int module, function_table* table, unsigned* size);
};

enum { kMessageAscii = 1, kMessageUnicode = 2, kMessageRegistered = 3 };

struct event { /* nvtxEventAttributes_v2; later versions only append */
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};

/* Handles of domains and registered strings are kept strings. */
typedef const char* handle;

static const char kDefaultDomain[1];

static uintptr_t owner_of(handle domain) {
  return (uintptr_t)(domain != NULL ? domain : kDefaultDomain);
}

static const char* name_of(const struct event* event, char out[SPHASE_HOOK_NAME_BYTES]) {
  if (event == NULL || event->size < sizeof(*event)) return NULL;
  switch (event->message_type) {
    case kMessageAscii:
      return event->message;
    case kMessageUnicode:
      return sphase_hook_utf8(event->message, out);
    case kMessageRegistered: /* by another tool's number, perhaps: looked up, not followed */
      return sphase_hook_kept(event->message);
    default:
      return NULL;
  }
}

static void mark_a(const char* name) { sphase_hook_event(name); }
static void mark_w(const wchar_t* name) {
  char out[SPHASE_HOOK_NAME_BYTES];
  sphase_hook_event(sphase_hook_utf8(name, out));
}
static void domain_mark_ex(handle domain, const struct event* event) {
  char out[SPHASE_HOOK_NAME_BYTES];
  (void)domain;
  sphase_hook_event(name_of(event, out));
}
static void mark_ex(const struct event* event) { domain_mark_ex(NULL, event); }

static int domain_push_ex(handle domain, const struct event* event) {
  char out[SPHASE_HOOK_NAME_BYTES];
  return sphase_hook_push(owner_of(domain), name_of(event, out));
}
static int push_ex(const struct event* event) { return domain_push_ex(NULL, event); }
static int push_a(const char* name) { return sphase_hook_push(owner_of(NULL), name); }
static int push_w(const wchar_t* name) {
  char out[SPHASE_HOOK_NAME_BYTES];
  return sphase_hook_push(owner_of(NULL), sphase_hook_utf8(name, out));
}
/* Both return the level of the range, from 0; negative is an error, and the end of a loop. */
static int domain_pop(handle domain) { return sphase_hook_pop(owner_of(domain)); }
static int pop(void) { return domain_pop(NULL); }

/* A started range's number is where its name is kept; only one that is, is ever followed. */
static uint64_t start_a(const char* name) {
  const char* kept = sphase_hook_keep(name);
  sphase_hook_begin(kept);
  return (uintptr_t)kept;
}
static uint64_t start_w(const wchar_t* name) {
  char out[SPHASE_HOOK_NAME_BYTES];
  return start_a(sphase_hook_utf8(name, out));
}
static uint64_t domain_start_ex(handle domain, const struct event* event) {
  char out[SPHASE_HOOK_NAME_BYTES];
  (void)domain;
  return start_a(name_of(event, out));
}
static uint64_t start_ex(const struct event* event) { return domain_start_ex(NULL, event); }
static void range_end(uint64_t id) {
  sphase_hook_end(sphase_hook_kept((const char*)(uintptr_t)id)); /* NOLINT(performance-*) */
}
static void domain_range_end(handle domain, uint64_t id) {
  (void)domain;
  range_end(id);
}

static handle domain_create_a(const char* name) { return sphase_hook_keep(name); }
static handle domain_create_w(const wchar_t* name) {
  char out[SPHASE_HOOK_NAME_BYTES];
  return sphase_hook_keep(sphase_hook_utf8(name, out));
}
static handle register_a(handle domain, const char* text) {
  (void)domain;
  return sphase_hook_keep(text);
}
static handle register_w(handle domain, const wchar_t* text) {
  (void)domain;
  return domain_create_w(text);
}

struct slot {
  unsigned number;
  function call;
};
#define SLOT(number, call) \
  { number, (function)(call) }

static const struct slot core_slots[] = {
    SLOT(kMarkEx, mark_ex),        SLOT(kMarkA, mark_a),        SLOT(kMarkW, mark_w),
    SLOT(kRangeStartEx, start_ex), SLOT(kRangeStartA, start_a), SLOT(kRangeStartW, start_w),
    SLOT(kRangeEnd, range_end),    SLOT(kRangePushEx, push_ex), SLOT(kRangePushA, push_a),
    SLOT(kRangePushW, push_w),     SLOT(kRangePop, pop)};
static const struct slot core2_slots[] = {
    SLOT(kDomainMarkEx, domain_mark_ex),      SLOT(kDomainRangeStartEx, domain_start_ex),
    SLOT(kDomainRangeEnd, domain_range_end),  SLOT(kDomainRangePushEx, domain_push_ex),
    SLOT(kDomainRangePop, domain_pop),        SLOT(kDomainRegisterStringA, register_a),
    SLOT(kDomainRegisterStringW, register_w), SLOT(kDomainCreateA, domain_create_a),
    SLOT(kDomainCreateW, domain_create_w)};

/* What is left alone becomes a call that returns at once. */
static void fill(const struct callbacks* callbacks, int module, const struct slot* slots,
                 size_t count) {
  function_table table = NULL;
  unsigned size = 0;
  if (!callbacks->get_module_function_table(module, &table, &size) || table == NULL) return;
  for (size_t i = 0; i < count; ++i) {
    if (slots[i].number < size && table[slots[i].number] != NULL) {
      *table[slots[i].number] = slots[i].call;
    }
  }
}

SPHASE_HOOK int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t id));

/* 1: the tool is there. */
int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t id)) {
  if (get_export_table == NULL) return 0;
  const struct callbacks* callbacks = get_export_table(kEtidCallbacks);
  if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks)) return 0;
  fill(callbacks, kModuleCore, core_slots, sizeof(core_slots) / sizeof(core_slots[0]));
  fill(callbacks, kModuleCore2, core2_slots, sizeof(core2_slots) / sizeof(core2_slots[0]));
  return 1;
}
