#include "spank/recorder/proc_source.h"

#include <unistd.h>

#include <charconv>

#include "spank/recorder/file.h"

namespace sphase {
namespace {

std::int64_t clock_tick_ns() { return 1'000'000'000 / sysconf(_SC_CLK_TCK); }

/// The number of field `index` (from 0) in a line of numbers and words.
std::int64_t field(std::string_view text, int index) {
  std::size_t at = 0;
  for (int i = 0; i < index && at != std::string_view::npos; ++i) {
    at = text.find(' ', at);
    if (at != std::string_view::npos) ++at;
  }
  if (at == std::string_view::npos) return 0;
  std::int64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  // The program's name stands in parentheses and may hold anything, parentheses too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  const std::string_view rest = text.substr(name_end + 2);  // from field 3, state
  ProcStat stat;
  stat.ppid = static_cast<int>(field(rest, 1));
  stat.own_cpu_ns = (field(rest, 11) + field(rest, 12)) * clock_tick_ns();
  stat.children_cpu_ns = (field(rest, 13) + field(rest, 14)) * clock_tick_ns();
  stat.start_ticks = field(rest, 19);
  return stat;
}

std::vector<int> ProcTree::pids() {
  constexpr std::size_t kMost = 4096;
  std::vector<int> found;
  if (access((proc_ + "/" + std::to_string(root_)).c_str(), F_OK) != 0) return found;
  found.push_back(root_);
  for (std::size_t i = 0; i < found.size() && found.size() < kMost; ++i) {
    const std::string pid = std::to_string(found[i]);
    // The main thread's list: a child belongs to the thread that made it, and most programs fork
    // there; the kernel re-parents to the main thread when another one ends.
    const auto text = read_file(proc_ + "/" + pid + "/task/" + pid + "/children");
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (const auto child = parse_number(rest)) {
      found.push_back(static_cast<int>(*child));
      const std::size_t end = rest.find(' ', rest.find_first_of("0123456789"));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end);
    }
  }
  return found;
}

std::optional<std::int64_t> ProcCpu::cpu_time_ns() {
  std::map<int, ProcStat> now;
  std::int64_t total_ns = 0;
  for (const int pid : tree_.pids()) {
    const auto text = read_file(proc_ + "/" + std::to_string(pid) + "/stat");
    const auto stat = text ? parse_proc_stat(*text) : std::nullopt;
    if (!stat) continue;
    now[pid] = *stat;
    total_ns += stat->own_cpu_ns + stat->children_cpu_ns;
  }
  for (const auto& [pid, before] : known_) {
    const auto still = now.find(pid);
    const bool gone = still == now.end() || still->second.start_ticks != before.start_ticks;
    // Waited for by a process of the tree: that one's children_cpu_ns holds it already.
    if (gone && !now.contains(before.ppid)) {
      carried_ns_ += before.own_cpu_ns + before.children_cpu_ns;
    }
  }
  const bool gone = now.empty();
  known_ = std::move(now);
  if (gone) return std::nullopt;
  last_ns_ = std::max(last_ns_, total_ns + carried_ns_);
  return last_ns_;
}

std::int64_t ProcCpu::resolution_ns() const { return clock_tick_ns(); }

std::optional<Memory> ProcMemory::memory() {
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  Memory memory;
  std::int64_t resident = 0;
  std::int64_t shared = 0;
  bool any = false;
  for (const int pid : tree_.pids()) {
    const auto text = read_file(proc_ + "/" + std::to_string(pid) + "/statm");
    if (!text) continue;
    any = true;
    resident += field(*text, 1) * page;
    shared += field(*text, 2) * page;
  }
  if (!any) return std::nullopt;
  memory.current = resident;
  memory.anon = std::max<std::int64_t>(0, resident - shared);
  return memory;
}

std::optional<std::int64_t> ProcMemory::current_bytes() {
  const auto all = memory();
  return all ? all->current : std::nullopt;
}

}  // namespace sphase
