/* A program with marks in it, as the models see one. Each adapter is loaded as its model loads it:
 * the entry points and tables are those of Kokkos, of nvtx3/nvtxDetail and of ittnotify_static.c.
 * Its arguments are done one after the other; a call that returns a number prints it.
 *
 *   library=FILE  dlopen(FILE) for itself only, as Python does; s.begin=NAME s.end=NAME call it
 *   global=FILE   dlopen(FILE) for all to see, as if the program were linked with it
 *   kokkos=FILE   k.push=N k.pop k.event=N k.create=N k.start k.stop k.destroy (of the newest)
 *   nvtx=FILE     n.push=N n.pushw=N n.pushex=N n.pop n.mark=N n.start=N n.end (of the newest)
 *                 n.domain=N (the current one) d.push=N d.pushreg=N d.pushbad d.pop d.mark=N d.null
 *   itt=FILE      one more static part, now the current one; i.domain=N i.off i.begin=N i.fn i.end
 *                 i.frame i.frameend i.mark=N
 *   thread …      the rest in a thread of its own, waited for
 *   fork …        the rest in a child, waited for
 *
 * "-" as N means NULL.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

__attribute__((noreturn)) static void die(const char* what) {
  const char* why = dlerror();
  fprintf(stderr, "host: %s: %s\n", what, why != NULL ? why : "?");
  exit(1);
}

static void* load(const char* file, int mode) {
  void* library = dlopen(file, mode);
  if (library == NULL) die(file);
  return library;
}

#define TAKE(pointer, library, name) \
  if ((*(void**)&(pointer) = dlsym(library, name)) == NULL) die(name)

/* --- libsphase ----------------------------------------------------------------------------- */

static struct {
  int (*begin)(const char*);
  int (*end)(const char*);
} s;

static void load_sphase(const char* file, int mode) {
  void* library = load(file, mode);
  TAKE(s.begin, library, "sphase_begin");
  TAKE(s.end, library, "sphase_end");
}

/* --- Kokkos -------------------------------------------------------------------------------- */

struct tool_settings {
  bool requires_global_fencing;
  bool padding[255];
};

static struct {
  void (*settings)(uint32_t, struct tool_settings*);
  void (*push)(const char*);
  void (*pop)(void);
  void (*event)(const char*);
  void (*create)(const char*, uint32_t*);
  void (*start)(uint32_t);
  void (*stop)(uint32_t);
  void (*destroy)(uint32_t);
  uint32_t section;
} k;

static void load_kokkos(const char* file) {
  void* library = load(file, RTLD_NOW | RTLD_GLOBAL);
  struct tool_settings settings = {.requires_global_fencing = true};
  TAKE(k.settings, library, "kokkosp_request_tool_settings");
  TAKE(k.push, library, "kokkosp_push_profile_region");
  TAKE(k.pop, library, "kokkosp_pop_profile_region");
  TAKE(k.event, library, "kokkosp_profile_event");
  TAKE(k.create, library, "kokkosp_create_profile_section");
  TAKE(k.start, library, "kokkosp_start_profile_section");
  TAKE(k.stop, library, "kokkosp_stop_profile_section");
  TAKE(k.destroy, library, "kokkosp_destroy_profile_section");
  k.settings(20240906, &settings);
  k.settings(20240906, NULL);
  printf("fencing %d\n", settings.requires_global_fencing);
}

/* --- NVTX ---------------------------------------------------------------------------------- */

enum { kCore = 16, kCore2 = 16 };

struct event {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;
};

typedef void (*function)(void);
static function core[kCore];
static function core2[kCore2];
static function* core_table[kCore + 1];
static function* core2_table[kCore2 + 1];
static void* domain;
static uint64_t range;

static int get_module(int module, function*** table, unsigned* size) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? core_table : core2_table;
  *size = module == 1 ? kCore : kCore2;
  return 1;
}

static const struct {
  size_t struct_size;
  int (*get_module_function_table)(int, function***, unsigned*);
} callbacks = {sizeof(callbacks), get_module};

static const void* get_table(uint32_t id) { return id == 1 ? &callbacks : NULL; }
static const void* get_nothing(uint32_t id) {
  (void)id;
  return NULL;
}

static void load_nvtx(const char* file) {
  int (*init)(const void* (*)(uint32_t));
  for (int i = 1; i < kCore; ++i) core_table[i] = &core[i];
  for (int i = 1; i < kCore2; ++i) core2_table[i] = &core2[i];
  TAKE(init, load(file, RTLD_LAZY), "InitializeInjectionNvtx2");
  printf("init %d %d\n", init(get_nothing), init(get_table));
}

/* Calls through the table as the header does: an entry that nobody filled does nothing. */
#define VIA(entry, type, ...) (entry != NULL ? ((type)(entry))(__VA_ARGS__) : 0)
#define VIA_VOID(entry, type, ...) \
  if (entry != NULL) ((type)(entry))(__VA_ARGS__)
typedef int (*int_of_text)(const void*);
typedef int (*int_of_nothing)(void);
typedef void (*void_of_text)(const void*);
typedef uint64_t (*id_of_text)(const void*);
typedef void (*void_of_id)(uint64_t);
typedef int (*int_of_two)(void*, const void*);
typedef void (*void_of_two)(void*, const void*);
typedef void* (*handle_of_two)(void*, const void*);

static struct event event_of(int type, const void* message) {
  return (struct event){
      .version = 3, .size = sizeof(struct event), .message_type = type, .message = message};
}

static const wchar_t* wide(const char* name) {
  static wchar_t out[256];
  size_t i = 0;
  for (; name != NULL && name[i] != '\0'; ++i) {
    out[i] = name[i] == '~' ? L'\u20ac' : (wchar_t)(unsigned char)name[i];
  }
  out[i] = L'\0';
  return name != NULL ? out : NULL;
}

#define IS(text) (strcmp(word, text) == 0)

static void do_nvtx(const char* word, const char* name) {
  const struct event ascii = event_of(1, name);
  if (IS("n.push")) printf("%d\n", VIA(core[9], int_of_text, name));
  if (IS("n.pushw")) printf("%d\n", VIA(core[10], int_of_text, wide(name)));
  if (IS("n.pushex")) printf("%d\n", VIA(core[8], int_of_text, &ascii));
  if (IS("n.pop")) printf("%d\n", VIA(core[11], int_of_nothing));
  if (IS("n.mark")) VIA_VOID(core[2], void_of_text, name);
  if (IS("n.start")) range = VIA(core[5], id_of_text, name);
  if (IS("n.end")) VIA_VOID(core[7], void_of_id, range);
  if (IS("n.endbad")) VIA_VOID(core[7], void_of_id, 12345);
}

static void do_domain(const char* word, const char* name) {
  struct event event = event_of(1, name);
  if (IS("d.pushreg")) {
    event = event_of(3, ((handle_of_two)core2[10])(domain, name));
  } else if (IS("d.pushbad")) {
    event = event_of(3, "not registered");
  } else if (IS("d.pushwide")) {
    event = event_of(2, wide(name));
  } else if (IS("d.pushsmall")) {
    event.size = 8;
  }
  if (IS("d.null")) {
    printf("%d\n", VIA(core2[4], int_of_two, domain, NULL));
  } else if (strncmp(word, "d.push", 6) == 0) {
    printf("%d\n", VIA(core2[4], int_of_two, domain, &event));
  }
  if (IS("d.pop")) printf("%d\n", VIA(core2[5], int_of_text, domain));
  if (IS("d.mark")) VIA_VOID(core2[1], void_of_two, domain, &event);
}

/* --- ITT ----------------------------------------------------------------------------------- */

struct id {
  unsigned long long d1, d2, d3;
};
struct itt_domain {
  volatile int flags;
  const char* name;
};
struct itt_name {
  const char* text;
};
struct api {
  const char* name;
  void** call;
  void* init_call;
  void* null_call;
  int group;
};
struct part {
  unsigned char magic[8];
  unsigned long major, minor, build;
  volatile long initialized, mutex_initialized, counter;
  pthread_mutex_t mutex;
  void* library;
  void* error_handler;
  const char** path;
  struct api* list;
};

static void own_domain_create(void) {}

/* One static part: its pointers and its list of them. */
struct itt {
  void (*begin)(const struct itt_domain*, struct id, struct id, struct itt_name*);
  void (*begin_fn)(const struct itt_domain*, struct id, struct id, void*);
  void (*end)(const struct itt_domain*);
  void (*frame)(const struct itt_domain*, struct id*);
  void (*frame_end)(const struct itt_domain*, struct id*);
  void (*marker)(const struct itt_domain*, struct id, struct itt_name*, int);
  void (*domain_create)(void);
  void (*sync)(void);
  struct api list[9];
  struct part part;
};
static struct itt parts[4];
static struct itt* itt; /* the newest of them */
static struct itt_domain domains[8];
static struct itt_domain* itt_domain;

static void load_itt(const char* file, unsigned long build) {
  void (*init)(struct part*, int);
  itt = itt == NULL ? parts : itt + 1;
  void (*const own_call)(void) = own_domain_create;
  void* const own = *(void* const*)&own_call;
  const struct api list[9] = {{"__itt_domain_create", (void**)&itt->domain_create, own, own, 4096},
                              {"__itt_task_begin", (void**)&itt->begin, own, NULL, 4096},
                              {"__itt_task_begin_fn", (void**)&itt->begin_fn, own, NULL, 4096},
                              {"__itt_task_end", (void**)&itt->end, own, NULL, 4096},
                              {"__itt_frame_begin_v3", (void**)&itt->frame, own, NULL, 4096},
                              {"__itt_frame_end_v3", (void**)&itt->frame_end, own, NULL, 4096},
                              {"__itt_marker", (void**)&itt->marker, own, NULL, 4096},
                              {"__itt_sync_prepare", (void**)&itt->sync, own, NULL, 16},
                              {NULL, NULL, NULL, NULL, 0}};
  memcpy(itt->list, list, sizeof(list));
  itt->sync = own_domain_create;
  itt->part = (struct part){.magic = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30},
                            .major = 3,
                            .build = build,
                            .list = itt->list};
  TAKE(init, load(file, RTLD_LAZY), "__itt_api_init");
  init(NULL, -1);
  init(&itt->part, -1);
  printf("own %d sync %d\n", itt->domain_create == own_domain_create, itt->sync != NULL);
}

static void do_itt(const char* word, const char* name) {
  const struct id null = {0, 0, 0};
  struct itt_name handle = {name};
  if (itt == NULL) return;
  if (IS("i.domain")) {
    itt_domain = itt_domain == NULL ? domains : itt_domain + 1;
    *itt_domain = (struct itt_domain){1, name};
  }
  if (IS("i.off")) itt_domain->flags = 0;
  if (IS("i.on")) itt_domain->flags = 1;
  if (IS("i.begin") && itt->begin != NULL) itt->begin(itt_domain, null, null, &handle);
  if (IS("i.nohandle") && itt->begin != NULL) itt->begin(itt_domain, null, null, NULL);
  if (IS("i.nodomain") && itt->begin != NULL) itt->begin(NULL, null, null, &handle);
  if (IS("i.fn")) itt->begin_fn(itt_domain, null, null, NULL);
  if (IS("i.end") && itt->end != NULL) itt->end(itt_domain);
  if (IS("i.frame")) itt->frame(itt_domain, NULL);
  if (IS("i.frameend")) itt->frame_end(itt_domain, NULL);
  if (IS("i.mark")) itt->marker(itt_domain, null, &handle, 0);
}

/* --- Words --------------------------------------------------------------------------------- */

static void do_kokkos(const char* word, const char* name) {
  if (IS("k.push")) k.push(name);
  if (IS("k.pop")) k.pop();
  if (IS("k.event")) k.event(name);
  if (IS("k.create")) k.create(name, &k.section);
  if (IS("k.start")) k.start(k.section);
  if (IS("k.stop")) k.stop(k.section);
  if (IS("k.destroy")) k.destroy(k.section);
  if (IS("k.bad")) k.start(100000);
}

static void do_word(char* word) {
  char* name = strchr(word, '=');
  if (name != NULL) *name++ = '\0';
  if (name != NULL && strcmp(name, "-") == 0) name = NULL;
  if (IS("library")) load_sphase(name, RTLD_NOW | RTLD_LOCAL);
  if (IS("global")) load_sphase(name, RTLD_NOW | RTLD_GLOBAL);
  if (IS("kokkos")) load_kokkos(name);
  if (IS("nvtx")) load_nvtx(name);
  if (IS("itt")) load_itt(name, 20180723);
  if (IS("olditt")) load_itt(name, 20101001);
  if (IS("s.begin") && s.begin != NULL) s.begin(name);
  if (IS("s.end") && s.end != NULL) s.end(name);
  if (IS("n.domain")) domain = ((void* (*)(const char*))core2[12])(name);
  if (strncmp(word, "k.", 2) == 0) do_kokkos(word, name);
  if (strncmp(word, "n.", 2) == 0 && !IS("n.domain")) do_nvtx(word, name);
  if (strncmp(word, "d.", 2) == 0) do_domain(word, name);
  if (strncmp(word, "i.", 2) == 0) do_itt(word, name);
}

static void* do_words(void* words) {
  for (char** word = words; *word != NULL; ++word) {
    if (strcmp(*word, "thread") == 0) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, do_words, word + 1) != 0) die("thread");
      pthread_join(thread, NULL);
      break;
    }
    if (strcmp(*word, "fork") == 0) {
      fflush(stdout);
      if (fork() == 0) {
        do_words(word + 1);
        fflush(stdout);
        _exit(0);
      }
      wait(NULL);
      break;
    }
    do_word(*word);
  }
  return NULL;
}

int main(int argc, char* argv[]) {
  if (argc < 2) die("usage");
  do_words(argv + 1);
  return 0;
}
