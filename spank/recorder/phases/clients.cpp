#include "spank/recorder/phases/clients.h"

#include <sys/syscall.h>

namespace sphase {

std::uint32_t Clients::add(int pid, std::uint32_t task) {
  if (clients_.size() >= kMost) return 0;
  const std::uint32_t number = next_++;
  Client& client = clients_[number];
  client.pid = pid;
  client.task = task;
  client.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  return number;
}

Client* Clients::find(std::uint32_t number) {
  const auto found = clients_.find(number);
  return found == clients_.end() ? nullptr : &found->second;
}

void remember_stamp(Client& client, const sphase_record& record) {
  if (record.cpu_time_ns == 0) return;
  client.stamp_cpu_ns = static_cast<std::int64_t>(record.cpu_time_ns);
  client.stamp_time_ns = static_cast<std::int64_t>(record.time_ns);
}

void stamp_edge(const Client& client, std::int64_t time_ns, Edge& edge) {
  if (!client.stamp_cpu_ns) return;
  const std::int64_t age_ns = time_ns - client.stamp_time_ns;
  if (age_ns < 0 || age_ns > Clients::kStampMostNs) return;
  edge.process_cpu_ns = *client.stamp_cpu_ns + age_ns;
  edge.process_uncertainty_ns = age_ns;
}

}  // namespace sphase
