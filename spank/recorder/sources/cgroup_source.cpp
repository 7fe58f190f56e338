// cgroup v1 and v2 sources: kept descriptors of the group's own files, opened read-only.
#include "common/clock.h"
#include "spank/recorder/file.h"
#include "spank/recorder/sources/counter_source.h"

namespace sphase {
namespace {

/// Source: cpuacct.usage, kernel Documentation/admin-guide/cgroup-v1/cpuacct.rst (ns).
class CpuacctV1 : public CpuSource {
 public:
  explicit CpuacctV1(Fd usage) : usage_(std::move(usage)) {}
  std::optional<std::int64_t> cpu_time_ns() override {
    char buffer[64];
    return parse_number(read_again(usage_, buffer));
  }
  std::int64_t resolution_ns() const override { return tick_ns(); }
  const char* tier() const override { return "cgroup1 cpuacct"; }

 private:
  Fd usage_;
};

/// Source: cpu.stat usage_usec, kernel Documentation/admin-guide/cgroup-v2.rst (µs).
class CpuV2 : public CpuSource {
 public:
  explicit CpuV2(Fd stat) : stat_(std::move(stat)) {}
  std::optional<std::int64_t> cpu_time_ns() override {
    char buffer[1024];
    const auto usec = number_after(read_again(stat_, buffer), "usage_usec");
    if (!usec) return std::nullopt;
    return *usec * 1000;
  }
  std::int64_t resolution_ns() const override { return tick_ns(); }
  const char* tier() const override { return "cgroup2 cpu.stat"; }

 private:
  Fd stat_;
};

/// Source: kernel Documentation/admin-guide/cgroup-v1/memory.rst. total_* cover child groups.
/// memory.stat is exact to 64 pages per CPU (the kernel's own batching).
class MemoryV1 : public MemorySource {
 public:
  MemoryV1(Fd usage, Fd peak, Fd stat, Fd kernel)
      : usage_(std::move(usage)),
        peak_(std::move(peak)),
        stat_(std::move(stat)),
        kernel_(std::move(kernel)) {}

  std::optional<Memory> memory() override {
    Memory memory;
    memory.current = current_bytes();
    if (!memory.current) return std::nullopt;
    char buffer[8192];
    std::optional<std::int64_t> cache;
    numbers_after(
        read_again(stat_, buffer),
        {{"total_cache", &cache}, {"total_rss", &memory.anon}, {"total_shmem", &memory.shmem}});
    if (cache) memory.file = std::max<std::int64_t>(0, *cache - memory.shmem.value_or(0));
    char small[64];
    memory.kernel = parse_number(read_again(kernel_, small));
    memory.peak = parse_number(read_again(peak_, small));
    return memory;
  }
  std::optional<std::int64_t> current_bytes() override {
    char buffer[64];
    return parse_number(read_again(usage_, buffer));
  }
  const char* tier() const override { return "cgroup1 memory"; }

 private:
  Fd usage_, peak_, stat_, kernel_;
};

/// Source: kernel Documentation/admin-guide/cgroup-v2.rst. memory.peak since 5.19.
class MemoryV2 : public MemorySource {
 public:
  MemoryV2(Fd current, Fd peak, Fd stat)
      : current_(std::move(current)), peak_(std::move(peak)), stat_(std::move(stat)) {}

  std::optional<Memory> memory() override {
    Memory memory;
    memory.current = current_bytes();
    if (!memory.current) return std::nullopt;
    char buffer[8192];
    std::optional<std::int64_t> file;
    numbers_after(read_again(stat_, buffer), {{"anon", &memory.anon},
                                              {"file", &file},
                                              {"kernel", &memory.kernel},
                                              {"shmem", &memory.shmem}});
    if (file) memory.file = std::max<std::int64_t>(0, *file - memory.shmem.value_or(0));
    char small[64];
    memory.peak = parse_number(read_again(peak_, small));
    return memory;
  }
  std::optional<std::int64_t> current_bytes() override {
    char buffer[64];
    return parse_number(read_again(current_, buffer));
  }
  const char* tier() const override { return "cgroup2 memory"; }

 private:
  Fd current_, peak_, stat_;
};

/// v1 keeps the list of an open file for a second, so there it is opened anew each time (7 µs).
class CgroupProcs : public ProcessSource {
 public:
  CgroupProcs(std::string path, Fd kept) : path_(std::move(path)), kept_(std::move(kept)) {}
  std::vector<int> pids() override {
    std::vector<int> pids;
    char buffer[8192];  // some 1000 processes; more are not looked at one by one anyway
    std::string_view text =
        kept_ ? read_again(kept_, buffer) : read_again(open_read(path_), buffer);
    // A number without its newline was cut by the buffer: it is some other process's.
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
         text.remove_prefix(end + 1)) {
      if (const auto pid = parse_number(text.substr(0, end))) {
        pids.push_back(static_cast<int>(*pid));
      }
    }
    return pids;
  }

 private:
  std::string path_;
  Fd kept_;
};

}  // namespace

std::optional<std::int64_t> Memory::held() const {
  if (anon) return *anon + shmem.value_or(0) + kernel.value_or(0);
  if (current && file) return *current - *file;
  return std::nullopt;
}

std::unique_ptr<CpuSource> open_cpuacct_v1(const std::string& directory) {
  Fd usage = open_read(directory + "/cpuacct.usage");
  if (!usage) return nullptr;
  return std::make_unique<CpuacctV1>(std::move(usage));
}

std::unique_ptr<CpuSource> open_cpu_v2(const std::string& directory) {
  Fd stat = open_read(directory + "/cpu.stat");
  if (!stat) return nullptr;
  return std::make_unique<CpuV2>(std::move(stat));
}

std::unique_ptr<MemorySource> open_memory_v1(const std::string& directory) {
  Fd usage = open_read(directory + "/memory.usage_in_bytes");
  if (!usage) return nullptr;
  return std::make_unique<MemoryV1>(
      std::move(usage), open_read(directory + "/memory.max_usage_in_bytes"),
      open_read(directory + "/memory.stat"), open_read(directory + "/memory.kmem.usage_in_bytes"));
}

std::unique_ptr<MemorySource> open_memory_v2(const std::string& directory) {
  Fd current = open_read(directory + "/memory.current");
  if (!current) return nullptr;
  return std::make_unique<MemoryV2>(std::move(current), open_read(directory + "/memory.peak"),
                                    open_read(directory + "/memory.stat"));
}

std::unique_ptr<ProcessSource> open_cgroup_procs(const std::string& directory, bool unified) {
  const std::string path = directory + "/cgroup.procs";
  Fd procs = open_read(path);
  if (!procs) return nullptr;
  return std::make_unique<CgroupProcs>(path, unified ? std::move(procs) : Fd());
}

}  // namespace sphase
