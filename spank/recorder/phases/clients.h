// Processes that mark: who they are, and the CPU time they last told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/ring.h"
#include "spank/recorder/file.h"
#include "spank/recorder/phases/phase_row.h"

namespace sphase {

/// A process that connected to the step's socket. Its number, pid and task come from us and the
/// kernel (SO_PEERCRED), never from what it writes.
struct Client {
  int pid = 0;
  std::uint32_t task = 0;
  Fd pidfd;                        // readable when the process has ended
  std::int64_t stamp_time_ns = 0;  // its last CPU stamp
  std::optional<std::int64_t> stamp_cpu_ns;
  std::uint64_t dropped_seen = 0;  // ring drops when it last marked
};

class Clients {
 public:
  /// 0: too many.
  std::uint32_t add(int pid, std::uint32_t task);
  Client* find(std::uint32_t number);
  void remove(std::uint32_t number) { clients_.erase(number); }
  std::map<std::uint32_t, Client>& all() { return clients_; }

  static constexpr std::size_t kMost = 4096;
  static constexpr std::int64_t kStampMostNs = 2'000'000;  // older ones say nothing

 private:
  std::map<std::uint32_t, Client> clients_;
  std::uint32_t next_ = 1;
};

/// Remembers the CPU stamp of a record, if it has one.
void remember_stamp(Client& client, const sphase_record& record);

/// Puts the process CPU time into `edge`: the client's last stamp, carried on by the time since (as
/// one busy thread would use it), with that time as its uncertainty.
void stamp_edge(const Client& client, std::int64_t time_ns, Edge& edge);

}  // namespace sphase
