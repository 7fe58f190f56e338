// One PAPI event set, attached to one task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "spank/recorder/papi/papi_api.h"

namespace sphase {

class PapiSet {
 public:
  struct Request {
    int pid = 0;
    int component = 0;
    std::vector<int> events;  // PAPI's codes
    bool multiplexed = false;
  };
  /// What the kernel says of one counter. Times in ns; without multiplexing they are not known.
  struct Raw {
    std::uint64_t count = 0;
    std::uint64_t time_enabled_ns = 0;
    std::uint64_t time_running_ns = 0;
  };

  /// `api` must outlive the set.
  explicit PapiSet(const PapiApi& api) : api_(api) {}
  ~PapiSet() { close(); }
  PapiSet(const PapiSet&) = delete;
  PapiSet& operator=(const PapiSet&) = delete;

  /// Counts from now on, all that `pid` and those it will start do in user mode.
  /// PAPI's code; but for kPapiOk the set is closed again. Cost: see PapiSource.
  int open(const Request& request);
  void close();

  /// Finds the descriptors that open() made: at most `most`, none of `others`.
  /// To be called right after it: they are looked for near the lowest one that was free before.
  void find_files(std::size_t most, const std::set<int>& others);
  const std::vector<int>& files() const { return files_; }  // in the order of native counters

  /// PAPI's code. Counts in the order of the events.
  int read(long long* counts) { return api_.read(set_, counts); }
  /// What one descriptor says. nullopt: this counter cannot run (all are taken), or is gone.
  std::optional<Raw> read_file(std::size_t index, bool multiplexed) const;

 private:
  int build(const Request& request);

  const PapiApi& api_;
  int set_ = 0;
  bool created_ = false;
  bool started_ = false;
  int first_file_ = 0;
  std::vector<int> files_;
};

}  // namespace sphase
