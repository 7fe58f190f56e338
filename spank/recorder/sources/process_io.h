// Bytes that the processes of a step moved, from /proc/<pid>/io.
//
// The kernel adds a process's counts to its parent's when the parent waits for it. Summed over all
// live processes of the step *and slurmstepd* (less what slurmstepd had before), the total is
// therefore whole, whoever waited for whom; only a process whose parent ended first is lost, and
// then the largest sum seen stands. After a task has ended the numbers hold what slurmstepd itself
// moved for it (its standard streams).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spank/recorder/file.h"

namespace sphase {

struct Tier;

/// Unit: B. Monotonic. Source: proc(5), /proc/<pid>/io.
struct Io {
  std::int64_t read_bytes = 0;        // fetched from storage
  std::int64_t write_bytes = 0;       // sent to storage
  std::int64_t read_call_bytes = 0;   // rchar: moved by read calls, whatever the file system
  std::int64_t write_call_bytes = 0;  // wchar
};
std::optional<Io> parse_io(std::string_view text);

class ProcessIo {
 public:
  ProcessIo(std::string proc, int stepd_pid);

  /// Takes what slurmstepd has moved so far as its own. Call before the first task runs.
  void rebase();
  /// `pids` sorted. nullopt: /proc/<pid>/io cannot be read. Cost: 1 µs per process known before.
  std::optional<Io> total(const std::vector<int>& pids);
  Tier tier() const;

  static constexpr std::size_t kMaxProcesses = 256;  // bound on descriptors

 private:
  std::string proc_;
  Fd stepd_;
  Io base_;
  Io most_;
  bool any_ = false;
  std::string reason_;
  std::map<int, Fd> files_;
};

}  // namespace sphase
