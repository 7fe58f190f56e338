#include "spank/recorder/papi/papi_api.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "spank/recorder/file.h"

#ifdef SPHASE_PAPI
#include <dlfcn.h>
#include <papi.h>
#endif

namespace sphase {
namespace {

int next_file() {
  const Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return fd.get();
}

std::uint64_t perf_id(int fd) {
  char target[64];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), target, sizeof(target));
  if (size <= 0) return 0;
  const std::string_view name(target, static_cast<std::size_t>(size));
  if (name != "anon_inode:[perf_event]") return 0;
  std::uint64_t id = 0;
  return ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 ? id : 0;
}

/// User mode only, which is what PAPI counts too.
int kernel_refusal() {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_INSTRUCTIONS;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  const Fd fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)));
  return fd ? 0 : errno;
}

#ifdef SPHASE_PAPI

static_assert(kPapiOk == PAPI_OK && kPapiNoEvent == PAPI_ENOEVNT);
static_assert(kPapiConflict == PAPI_ECNFLCT && kPapiForbidden == PAPI_EPERM);

constexpr const char* kLibraries[] = {"libpapi.so.7",   "libpapi.so.7.3", "libpapi.so.7.2",
                                      "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.6",
                                      "libpapi.so.6.0", "libpapi.so"};

void* open_library() {
  for (const char* name : kLibraries) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

/// Looks functions up; remembers one that is missing.
struct Symbols {
  void* library;
  std::string missing;
  template <typename Function>
  Function* get(Function*, const char* name) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    return reinterpret_cast<Function*>(symbol);
  }
};

#define SPHASE_SYMBOL(symbols, name) (symbols).get(static_cast<decltype(&(name))>(nullptr), #name)

/// Other components are of no use here, and looking a name up would start them: GPU libraries,
/// loaded into the recorder. Only before PAPI_library_init; later calls do nothing.
std::function<void()> component_filter(Symbols& symbols) {
  auto* const number = SPHASE_SYMBOL(symbols, PAPI_num_components);
  auto* const info = SPHASE_SYMBOL(symbols, PAPI_get_component_info);
  auto* const disable = SPHASE_SYMBOL(symbols, PAPI_disable_component);
  return [number, info, disable] {
    for (int i = 0; i < number(); ++i) {
      const auto* const found = info(i);
      if (found != nullptr && std::string_view(found->name) != "perf_event") (void)disable(i);
    }
  };
}

/// The library takes the number of its own header alone, so it is told what it wants to hear.
void set_library(PapiApi& api, Symbols& symbols) {
  auto* const init = SPHASE_SYMBOL(symbols, PAPI_library_init);
  api.library_init = [init, filter = component_filter(symbols),
                      wanted = api.version & static_cast<int>(0xffff0000u)] {
    filter();
    const int got = init(wanted);
    return got == wanted ? PAPI_OK : got < 0 ? got : PAPI_EINVAL;
  };
  api.multiplex_init = SPHASE_SYMBOL(symbols, PAPI_multiplex_init);
  auto* const text = SPHASE_SYMBOL(symbols, PAPI_strerror);
  api.error_text = [text](int code) -> std::string {
    const char* const words = text(code);
    return words != nullptr ? words : "error " + std::to_string(code);
  };
  auto* const find = SPHASE_SYMBOL(symbols, PAPI_event_name_to_code);
  api.find_event = [find](const std::string& name, int* event) {
    return find(name.c_str(), event);
  };
  api.component_of = SPHASE_SYMBOL(symbols, PAPI_get_event_component);
}

void set_event_sets(PapiApi& api, Symbols& symbols) {
  api.create = [create = SPHASE_SYMBOL(symbols, PAPI_create_eventset)](int* set) {
    *set = PAPI_NULL;
    return create(set);
  };
  api.assign = SPHASE_SYMBOL(symbols, PAPI_assign_eventset_component);
  api.multiplex = SPHASE_SYMBOL(symbols, PAPI_set_multiplex);
  api.inherit = [set_opt = SPHASE_SYMBOL(symbols, PAPI_set_opt)](int set) {
    PAPI_option_t option{};
    option.inherit.eventset = set;
    option.inherit.inherit = PAPI_INHERIT_ALL;
    return set_opt(PAPI_INHERIT, &option);
  };
  api.attach = [attach = SPHASE_SYMBOL(symbols, PAPI_attach)](int set, int pid) {
    return attach(set, static_cast<unsigned long>(pid));
  };
  api.add = SPHASE_SYMBOL(symbols, PAPI_add_event);
  api.start = SPHASE_SYMBOL(symbols, PAPI_start);
  api.read = SPHASE_SYMBOL(symbols, PAPI_read);
  api.stop = SPHASE_SYMBOL(symbols, PAPI_stop);
  auto* const clean = SPHASE_SYMBOL(symbols, PAPI_cleanup_eventset);
  auto* const destroy = SPHASE_SYMBOL(symbols, PAPI_destroy_eventset);
  api.destroy = [clean, destroy](int set) {
    const int cleaned = clean(set);
    return cleaned == PAPI_OK ? destroy(&set) : cleaned;
  };
}

#endif

}  // namespace

void use_kernel(PapiApi& api) {
  api.next_file = next_file;
  api.perf_id = perf_id;
  api.read_file = [](int fd, void* to, std::size_t bytes) { return ::read(fd, to, bytes); };
  api.kernel_refusal = kernel_refusal;
}

#ifdef SPHASE_PAPI

Result<PapiApi> load_papi() {
  void* const library = open_library();  // never closed: PAPI keeps state for the process
  if (library == nullptr) return Error{"PAPI (libpapi.so.7 or .6) is not installed on this node"};
  Symbols symbols{library, ""};
  auto* const get_opt = SPHASE_SYMBOL(symbols, PAPI_get_opt);
  PapiApi api;
  api.version = get_opt != nullptr ? get_opt(PAPI_LIB_VERSION, nullptr) : 0;
  if (const int major = PAPI_VERSION_MAJOR(api.version); major != 6 && major != 7) {
    return Error{"PAPI on this node is of version " + std::to_string(major) + ", not 6 or 7"};
  }
  Dl_info from{};
  if (dladdr(reinterpret_cast<void*>(get_opt), &from) != 0) api.library = from.dli_fname;
  set_library(api, symbols);
  set_event_sets(api, symbols);
  use_kernel(api);
  if (!symbols.missing.empty()) return Error{"PAPI on this node has no " + symbols.missing};
  return api;
}

#else

Result<PapiApi> load_papi() { return Error{"sphase was built without PAPI (no papi.h)"}; }

#endif

}  // namespace sphase
