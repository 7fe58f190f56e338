#include "spank/recorder/sources/proc_source.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "spank/recorder/file.h"

namespace sphase {
namespace {

std::int64_t clock_tick_ns() { return 1'000'000'000 / sysconf(_SC_CLK_TCK); }

/// The number of field `index` (from 0) in a line of numbers and words. nullopt: cut before it.
std::optional<std::int64_t> field(std::string_view text, int index) {
  std::size_t at = 0;
  for (int i = 0; i < index; ++i) {
    at = text.find(' ', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  // The program's name stands in parentheses and may hold anything, parentheses too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  const std::string_view rest = text.substr(name_end + 2);  // from field 3, state
  const auto ppid = field(rest, 1);
  const auto utime = field(rest, 11), stime = field(rest, 12);
  const auto cutime = field(rest, 13), cstime = field(rest, 14);
  const auto start = field(rest, 19);
  if (!ppid || !utime || !stime || !cutime || !cstime || !start) return std::nullopt;
  ProcStat stat;
  stat.ppid = static_cast<int>(*ppid);
  stat.own_cpu_ns = (*utime + *stime) * clock_tick_ns();
  stat.children_cpu_ns = (*cutime + *cstime) * clock_tick_ns();
  stat.start_ticks = *start;
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
    std::string list = proc_;
    list.append("/").append(pid).append("/task/").append(pid).append("/children");
    const auto text = read_file(list);
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

/// Processes that ended since the last read, added up below the nearest ancestor that still lives.
/// If that one was given less by its children than they had, somebody did not wait for a child:
/// what is missing stays ours.
std::int64_t ProcCpu::lost_since(const std::map<int, ProcStat>& now) const {
  const auto still_there = [&](int pid, const ProcStat& before) {
    const auto found = now.find(pid);
    return found != now.end() && found->second.start_ticks == before.start_ticks;
  };
  const auto living_ancestor = [&](int pid) {
    constexpr int kMostGenerations = 4096;
    auto at = known_.find(pid);
    for (int i = 0; i < kMostGenerations && at != known_.end(); ++i) {
      if (still_there(at->first, at->second)) return at->first;
      at = known_.find(at->second.ppid);
    }
    return 0;
  };
  std::map<int, std::int64_t> ended_ns;  // by living ancestor; 0: there is none
  for (const auto& [pid, before] : known_) {
    if (still_there(pid, before)) continue;
    ended_ns[living_ancestor(before.ppid)] += before.own_cpu_ns + before.children_cpu_ns;
  }
  std::int64_t lost_ns = 0;
  for (const auto& [ancestor, had_ns] : ended_ns) {
    std::int64_t given_ns = 0;
    if (ancestor != 0) {
      given_ns = now.at(ancestor).children_cpu_ns - known_.at(ancestor).children_cpu_ns;
    }
    lost_ns += std::max<std::int64_t>(0, had_ns - given_ns);
  }
  return lost_ns;
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
  if (now.empty()) {
    known_.clear();
    return std::nullopt;
  }
  carried_ns_ += lost_since(now);
  known_ = std::move(now);
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
    const auto pages = text ? field(*text, 1) : std::nullopt;
    const auto shared_pages = text ? field(*text, 2) : std::nullopt;
    if (!pages || !shared_pages) continue;
    any = true;
    resident += *pages * page;
    shared += *shared_pages * page;
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
