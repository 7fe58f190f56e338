// The part of PAPI that the recorder uses, found at run time: a node without it records all else.
//
// Facts of PAPI 7.0 that this rests on (src/components/perf_event/perf_event.c, src/papi.c):
//  - An attached event set belongs to the task it is attached to, not to the thread that made it.
//    Any thread may read, stop or destroy it, one at a time; PAPI_thread_init is not needed.
//  - PAPI_attach and PAPI_INHERIT first open a hardware event. Without a PMU both fail, even for
//    software events; a set whose attach failed would count ourselves.
//  - With inheritance each counter is read by a call of its own, and its failure is not passed on:
//    PAPI_read is "fine" and the count stands still. Hence `perf_id` and `read_file`.
//  - Without multiplexing the set is one pinned group. If it cannot run, its leader reads 0 bytes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/result.h"

namespace sphase {

/// PAPI's return codes that mean something to us; others go through error_text.
constexpr int kPapiOk = 0;
constexpr int kPapiNoEvent = -7;
constexpr int kPapiConflict = -8;
constexpr int kPapiForbidden = -15;

/// Every function returns kPapiOk or one of PAPI's negative codes, unless it says otherwise.
/// Tests fill it with their own. Not safe for two threads at once.
struct PapiApi {
  int version = 0;  // of the library found: major << 24 | minor << 16 | revision << 8 | increment
  std::string library;  // the file it was loaded from

  std::function<int()> library_init;    // perf_event alone; 1.5 to 2 ms the first time
  std::function<int()> multiplex_init;  // only if a set is to be multiplexed
  std::function<std::string(int code)> error_text;

  std::function<int(const std::string& name, int* event)> find_event;
  std::function<int(int event)> component_of;  // index, or negative

  std::function<int(int* set)> create;
  std::function<int(int set, int component)> assign;
  std::function<int(int set)> multiplex;
  std::function<int(int set)> inherit;  // threads and children started later are counted too
  std::function<int(int set, int pid)> attach;
  std::function<int(int set, int event)> add;
  std::function<int(int set)> start;
  std::function<int(int set, long long* counts)> read;
  std::function<int(int set, long long* counts)> stop;
  std::function<int(int set)> destroy;  // a stopped set: its events and itself

  /// The lowest descriptor that is free, where the next file will be.
  std::function<int()> next_file;
  /// The kernel's id of the perf event behind a descriptor; ids only grow. 0: not a perf event.
  /// Cost: 2 µs.
  std::function<std::uint64_t(int fd)> perf_id;
  /// read(2).
  std::function<ssize_t(int fd, void* to, std::size_t bytes)> read_file;
  /// errno of counting one's own instructions without PAPI; 0: that works.
  std::function<int()> kernel_refusal;
};

/// Loads libpapi, 7 or 6. Does not initialise it. Cost: 1.4 ms, for libpfm is large.
/// Error: one sentence (not installed; too old; built without PAPI's header).
Result<PapiApi> load_papi();

/// The kernel's side alone.
void use_kernel(PapiApi& api);

}  // namespace sphase
