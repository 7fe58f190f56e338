// The counters of a cgroup, from folders that look like one and, where root can make it, a real
// one.
#include <doctest/doctest.h>

#include "spank/recorder/file.h"
#include "spank/recorder/sources/counter_source.h"
#include "tests/common/tools.h"

using namespace sphase;
using sphase::testing::names_in;
using sphase::testing::TempFolder;
using sphase::testing::text_of;

namespace {

constexpr const char* kStatV1 =
    "cache 81920\nrss 4096\nrss_huge 0\nshmem 8192\nmapped_file 0\ndirty 0\nwriteback 0\n"
    "pgpgin 123\npgpgout 45\npgfault 678\npgmajfault 0\ninactive_anon 0\nactive_anon 4096\n"
    "inactive_file 0\nactive_file 0\nunevictable 0\nhierarchical_memory_limit 524288000\n"
    "total_cache 102400\ntotal_rss 1048576\ntotal_rss_huge 2097152\ntotal_shmem 16384\n"
    "total_mapped_file 4096\ntotal_dirty 0\ntotal_pgpgin 200\n";
constexpr const char* kStatV2 =
    "anon 1048576\nfile 204800\nkernel 65536\nkernel_stack 16384\npagetables 8192\npercpu 0\n"
    "sock 0\nvmalloc 0\nshmem 4096\nzswap 0\nfile_mapped 4096\nfile_dirty 0\nanon_thp 0\n"
    "inactive_anon 0\nslab 32768\nworkingset_refault_anon 0\npgfault 678\n";

void fill_v1(const TempFolder& folder) {
  folder.write("cpuacct.usage", "1234567890\n");
  folder.write("memory.usage_in_bytes", "2000000\n");
  folder.write("memory.max_usage_in_bytes", "3000000\n");
  folder.write("memory.kmem.usage_in_bytes", "65536\n");
  folder.write("memory.stat", kStatV1);
  folder.write("cgroup.procs", "12\n345\n6789\n");
}

void fill_v2(const TempFolder& folder) {
  folder.write("cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 0\n");
  folder.write("memory.current", "2000000\n");
  folder.write("memory.peak", "3000000\n");
  folder.write("memory.stat", kStatV2);
}

/// Flags of every descriptor of ours that is open on a file below `folder`.
std::vector<unsigned> open_flags(const std::string& folder) {
  std::vector<unsigned> flags;
  for (const std::string& number : names_in("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink("/proc/self/fd/" + number, gone);
    if (gone || target.string().find(folder) != 0) continue;
    const std::string info = text_of("/proc/self/fdinfo/" + number);
    flags.push_back(
        static_cast<unsigned>(std::stoul(info.substr(info.find("flags:") + 6), nullptr, 8)));
  }
  return flags;
}

}  // namespace

TEST_CASE("cgroup v1: CPU time and memory in its parts") {
  const TempFolder folder;
  fill_v1(folder);
  const auto cpu = open_cpuacct_v1(folder.path());
  REQUIRE(cpu);
  CHECK(cpu->cpu_time_ns() == 1234567890);
  CHECK(std::string(cpu->tier()) == "cgroup1 cpuacct");
  CHECK(cpu->resolution_ns() > 0);
  const auto memory = open_memory_v1(folder.path());
  REQUIRE(memory);
  const auto now = memory->memory();
  REQUIRE(now);
  CHECK(now->current == 2000000);
  CHECK(now->anon == 1048576);
  CHECK(now->shmem == 16384);
  CHECK(now->file == 102400 - 16384);
  CHECK(now->kernel == 65536);
  CHECK(now->peak == 3000000);
  CHECK(now->held() == 1048576 + 16384 + 65536);
  CHECK(memory->current_bytes() == 2000000);
  CHECK(std::string(memory->tier()) == "cgroup1 memory");
}

TEST_CASE("cgroup v2: CPU time in ns and memory in its parts") {
  const TempFolder folder;
  fill_v2(folder);
  const auto cpu = open_cpu_v2(folder.path());
  REQUIRE(cpu);
  CHECK(cpu->cpu_time_ns() == 1'500'000);
  CHECK(std::string(cpu->tier()) == "cgroup2 cpu.stat");
  const auto memory = open_memory_v2(folder.path());
  REQUIRE(memory);
  const auto now = memory->memory();
  REQUIRE(now);
  CHECK(now->current == 2000000);
  CHECK(now->anon == 1048576);
  CHECK(now->shmem == 4096);
  CHECK(now->file == 204800 - 4096);
  CHECK(now->kernel == 65536);
  CHECK(now->peak == 3000000);
  CHECK(std::string(memory->tier()) == "cgroup2 memory");
}

TEST_CASE("where the kernel has no memory.peak, the peak is NULL and all else is there") {
  const TempFolder folder;
  folder.write("memory.current", "2000000\n");
  folder.write("memory.stat", kStatV2);
  const auto memory = open_memory_v2(folder.path());
  REQUIRE(memory);
  CHECK(memory->memory()->peak == std::nullopt);
  CHECK(memory->memory()->anon == 1048576);
}

TEST_CASE("where memory.stat is missing, its parts are NULL, never 0") {
  const TempFolder folder;
  folder.write("memory.current", "2000000\n");
  const auto v2 = open_memory_v2(folder.path())->memory();
  REQUIRE(v2);
  CHECK(v2->current == 2000000);
  folder.write("memory.usage_in_bytes", "1\n");
  const auto v1 = open_memory_v1(folder.path())->memory();
  REQUIRE(v1);
  for (const auto& now : {*v2, *v1}) {
    CHECK(now.anon == std::nullopt);
    CHECK(now.file == std::nullopt);
    CHECK(now.shmem == std::nullopt);
    CHECK(now.kernel == std::nullopt);
    CHECK(now.peak == std::nullopt);
    CHECK(now.held() == std::nullopt);
  }
}

TEST_CASE("an old kernel without memory.stat shmem: the cache is counted whole") {
  const TempFolder folder;
  folder.write("memory.usage_in_bytes", "5\n");
  folder.write("memory.stat", "total_cache 100\ntotal_rss 50\n");
  const auto now = open_memory_v1(folder.path())->memory();
  REQUIRE(now);
  CHECK(now->file == 100);
  CHECK(now->shmem == std::nullopt);
  CHECK(now->held() == 50);
}

TEST_CASE("a group without its main file gives no source") {
  const TempFolder folder;
  CHECK_FALSE(open_cpuacct_v1(folder.path()));
  CHECK_FALSE(open_cpu_v2(folder.path()));
  CHECK_FALSE(open_memory_v1(folder.path()));
  CHECK_FALSE(open_memory_v2(folder.path()));
  CHECK_FALSE(open_cgroup_procs(folder.path(), true));
  CHECK_FALSE(open_cgroup_procs(folder / "none", false));
}

TEST_CASE("garbage and emptied files read as nothing, not as 0 and not as a failure") {
  for (const char* content : {"", "\n", "garbage\n", "max\n", "-\n"}) {
    CAPTURE(content);
    const TempFolder folder;
    for (const char* file : {"cpuacct.usage", "cpu.stat", "memory.usage_in_bytes", "memory.current",
                             "memory.stat", "cgroup.procs"}) {
      folder.write(file, content);
    }
    CHECK(open_cpuacct_v1(folder.path())->cpu_time_ns() == std::nullopt);
    CHECK(open_cpu_v2(folder.path())->cpu_time_ns() == std::nullopt);
    CHECK(open_memory_v1(folder.path())->memory() == std::nullopt);
    CHECK(open_memory_v2(folder.path())->current_bytes() == std::nullopt);
    CHECK(open_cgroup_procs(folder.path(), true)->pids().empty());
  }
}

TEST_CASE("processes of a group are listed, and none once its folder is deleted") {
  const TempFolder folder;
  folder.write("g/cgroup.procs", "12\n345\n6789\n");
  const auto v1 = open_cgroup_procs(folder / "g", false);
  const auto v2 = open_cgroup_procs(folder / "g", true);
  CHECK(v1->pids() == std::vector<int>{12, 345, 6789});
  CHECK(v2->pids() == std::vector<int>{12, 345, 6789});
  folder.write("g/cgroup.procs", "12\n");
  CHECK(v2->pids() == std::vector<int>{12});
  std::filesystem::remove_all(folder / "g");
  CHECK(v1->pids().empty());
}

TEST_CASE("a list of processes longer than one read ends at a whole number") {
  const TempFolder folder;
  std::string text;
  for (int pid = 100000; pid < 103000; ++pid) text += std::to_string(pid) + "\n";
  folder.write("cgroup.procs", text);
  const auto pids = open_cgroup_procs(folder.path(), false)->pids();
  REQUIRE(pids.size() > 1000);
  CHECK(pids.back() == 100000 + static_cast<int>(pids.size()) - 1);
}

TEST_CASE(
    "a group that is removed between open and read is data, not a failure (needs root and a "
    "cgroup)") {
  // A real cgroup answers ENODEV then, which no ordinary folder can show.
  const auto try_root = [](const std::string& root,
                           const char* file) -> std::optional<std::string> {
    const std::string group = root + "/sphase_test_" + std::to_string(getpid());
    if (access((root + "/" + file).c_str(), F_OK) != 0) return std::nullopt;
    if (mkdir(group.c_str(), 0755) != 0) return std::nullopt;
    return group;
  };
  const CgroupTree tree = CgroupTree::read();
  int tried = 0;
  if (const CgroupMount* mount = tree.mount_of("cpuacct")) {
    if (const auto group = try_root(mount->mount_point, "cpuacct.usage")) {
      const auto cpu = open_cpuacct_v1(*group);
      const auto processes = open_cgroup_procs(*group, false);
      CHECK(cpu->cpu_time_ns() == 0);
      REQUIRE(rmdir(group->c_str()) == 0);
      CHECK(cpu->cpu_time_ns() == std::nullopt);
      CHECK(processes->pids().empty());
      ++tried;
    }
  }
  if (const CgroupMount* mount = tree.mount_of("")) {
    if (const auto group = try_root(mount->mount_point, "cgroup.procs")) {
      const auto cpu = open_cpu_v2(*group);
      const auto processes = open_cgroup_procs(*group, true);
      REQUIRE(rmdir(group->c_str()) == 0);
      if (cpu) CHECK(cpu->cpu_time_ns() == std::nullopt);
      CHECK(processes->pids().empty());
      ++tried;
    }
  }
  if (tried == 0) MESSAGE("skipped: no cgroup can be made here (needs root and a mounted cgroup)");
}

TEST_CASE("a group's files are opened for reading only") {
  const TempFolder folder;
  fill_v1(folder);
  fill_v2(folder);
  const auto cpu1 = open_cpuacct_v1(folder.path());
  const auto cpu2 = open_cpu_v2(folder.path());
  const auto memory1 = open_memory_v1(folder.path());
  const auto memory2 = open_memory_v2(folder.path());
  const auto processes = open_cgroup_procs(folder.path(), true);
  const auto flags = open_flags(folder.path());
  CHECK(flags.size() == 10);
  for (const unsigned one : flags) {
    CHECK((one & O_ACCMODE) == O_RDONLY);
    CHECK((one & (O_TRUNC | O_CREAT | O_APPEND)) == 0);
    CHECK((one & O_CLOEXEC) != 0);
  }
}

TEST_CASE("reading changes nothing in the group's folder") {
  const TempFolder folder;
  fill_v1(folder);
  const auto before = names_in(folder.path()).size();
  const std::string peak = text_of(folder / "memory.max_usage_in_bytes");
  for (int i = 0; i < 10; ++i) (void)open_memory_v1(folder.path())->memory();
  CHECK(names_in(folder.path()).size() == before);
  CHECK(text_of(folder / "memory.max_usage_in_bytes") == peak);
}
