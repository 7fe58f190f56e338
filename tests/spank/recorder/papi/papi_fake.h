// PAPI and its kernel in memory. Each counter goes up by one per read, so tests are exact.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "spank/recorder/papi/papi_api.h"

namespace sphase::testing {

class FakePapi {
 public:
  FakePapi() {
    for (const char* name : {"PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_BR_MSP"}) known[name] = 1;
    known["PAPI_DP_OPS"] = 4;
  }
  FakePapi(const FakePapi&) = delete;
  FakePapi& operator=(const FakePapi&) = delete;

  PapiApi api();

  // The node. Change it as you like.
  std::map<std::string, int> known;    // event -> native counters
  std::map<std::string, int> refused;  // event -> PAPI's code when it is added
  int counters = 8;                    // that run at once; more must be multiplexed
  int init_code = kPapiOk;
  int kernel_errno = 0;
  bool has_files = true;
  bool backwards = false;             // later counters get lower descriptors
  std::set<int> gone_pids;            // attaching to them fails
  bool group_fails = false;           // the group cannot run: its leader reads 0 bytes
  int read_code = kPapiOk;            // of PAPI's read
  std::atomic<long long> offset = 0;  // added to every count; a session reads on another thread
  std::uint64_t enabled_ns = 0;       // what multiplexed descriptors say
  std::uint64_t running_ns = 0;

  // What was done.
  int inits = 0, multiplex_inits = 0, reads = 0;
  std::size_t open_sets() const { return sets_.size(); }
  std::size_t open_files() const { return files_.size(); }

 private:
  struct Set {
    int pid = 0;
    bool inherit = false, multiplexed = false, running = false;
    std::vector<std::string> events;
    int natives = 0;
    long long reads = 0;
  };
  struct File {
    int set;
    std::uint64_t id;
    std::uint64_t reads = 0;
  };
  std::string name_of(int event) const { return names_[static_cast<std::size_t>(event)]; }
  int add(int number, int event);
  int destroy(int number);
  ssize_t read_file(int fd, void* to, std::size_t bytes);
  int lowest_file() const {
    int fd = 100;
    while (files_.contains(fd)) ++fd;
    return fd;
  }
  int next_file() const {
    int fd = 150;
    while (files_.contains(fd)) --fd;
    return backwards ? fd : lowest_file();
  }
  bool is_leader(const File& file) const {
    if (sets_.at(file.set).multiplexed) return true;
    return std::none_of(files_.begin(), files_.end(), [&file](const auto& other) {
      return other.second.set == file.set && other.second.id < file.id;
    });
  }

  std::vector<std::string> names_;
  std::map<int, Set> sets_;
  std::map<int, File> files_;
  int next_set_ = 0;
  std::uint64_t next_id_ = 1;
};

inline PapiApi FakePapi::api() {
  PapiApi api;
  api.version = 7 << 24;
  api.library_init = [this] { return ++inits, init_code; };
  api.multiplex_init = [this] { return ++multiplex_inits, kPapiOk; };
  api.error_text = [](int code) { return "code " + std::to_string(code); };
  api.find_event = [this](const std::string& name, int* event) {
    if (!known.contains(name)) return kPapiNoEvent;
    *event = static_cast<int>(names_.size());
    names_.push_back(name);
    return kPapiOk;
  };
  api.component_of = [](int) { return 0; };
  api.create = [this](int* set) {
    sets_[*set = next_set_++];
    return kPapiOk;
  };
  api.assign = [](int, int) { return kPapiOk; };
  api.multiplex = [this](int set) { return sets_.at(set).multiplexed = true, kPapiOk; };
  api.inherit = [this](int set) { return sets_.at(set).inherit = true, kPapiOk; };
  api.attach = [this](int set, int pid) {
    if (gone_pids.contains(pid)) return -3;
    sets_.at(set).pid = pid;
    return kPapiOk;
  };
  api.add = [this](int set, int event) { return add(set, event); };
  api.start = [this](int set) {
    Set& found = sets_.at(set);
    found.running = found.inherit && found.pid > 0;
    return found.running ? kPapiOk : -1;
  };
  api.read = [this](int set, long long* counts) {
    Set& found = sets_.at(set);
    ++reads;
    ++found.reads;
    for (std::size_t i = 0; i < found.events.size(); ++i) counts[i] = offset + found.reads;
    return read_code;
  };
  api.stop = [this](int set, long long*) { return sets_.at(set).running = false, kPapiOk; };
  api.destroy = [this](int set) { return destroy(set); };
  api.next_file = [this] { return lowest_file(); };
  api.perf_id = [this](int fd) { return files_.contains(fd) ? files_.at(fd).id : 0; };
  api.read_file = [this](int fd, void* to, std::size_t bytes) { return read_file(fd, to, bytes); };
  api.kernel_refusal = [this] { return kernel_errno; };
  return api;
}

inline int FakePapi::add(int number, int event) {
  Set& set = sets_.at(number);
  const std::string name = name_of(event);
  if (refused.contains(name)) return refused.at(name);
  const int more = known.at(name);
  if (!set.multiplexed && set.natives + more > counters) return kPapiConflict;
  set.natives += more;
  set.events.push_back(name);
  for (int i = 0; has_files && i < more; ++i) files_[next_file()] = {number, next_id_++};
  return kPapiOk;
}

inline int FakePapi::destroy(int number) {
  if (sets_.at(number).running) return -10;
  std::erase_if(files_, [number](const auto& file) { return file.second.set == number; });
  sets_.erase(number);
  return kPapiOk;
}

inline ssize_t FakePapi::read_file(int fd, void* to, std::size_t bytes) {
  if (!files_.contains(fd)) return -1;
  File& file = files_.at(fd);
  if (group_fails && is_leader(file)) return 0;
  const std::uint64_t words[3] = {static_cast<std::uint64_t>(offset.load()) + ++file.reads,
                                  enabled_ns, running_ns};
  const std::size_t size = sets_.at(file.set).multiplexed ? sizeof(words) : sizeof(words[0]);
  if (bytes < size) return -1;
  std::memcpy(to, words, size);
  return static_cast<ssize_t>(size);
}

}  // namespace sphase::testing
