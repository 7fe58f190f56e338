// The fallback sources: a task's process tree in /proc, faked and real.
#include "spank/recorder/sources/proc_source.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <time.h>

#include <cstring>

#include "spank/recorder/file.h"
#include "tests/spank/recorder/sources/fake_node.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

const std::int64_t kTickNs = 1'000'000'000 / sysconf(_SC_CLK_TCK);

std::int64_t own_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Uses CPU time; a limit in CPU time, not on the wall, so that a busy machine changes nothing.
int burn(std::int64_t ns) {
  const std::int64_t end = own_cpu_ns() + ns;
  volatile unsigned sink = 0;
  while (own_cpu_ns() < end) sink = sink + 1;
  return 0;
}

/// A pipe whose ends a child holds until it is told to go on.
class Gate {
 public:
  Gate() { REQUIRE(pipe(ends_) == 0); }
  ~Gate() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  void open() {
    close(ends_[1]);
    ends_[1] = -1;
  }
  void pass() {
    close(ends_[1]);
    char byte = 0;
    [[maybe_unused]] const ssize_t size = read(ends_[0], &byte, 1);
  }

 private:
  int ends_[2];
};

}  // namespace

TEST_CASE("a stat line is read whatever the program is called") {
  for (const char* name : {"sh", "a b", "((", ") S 1 (", "x)) R 5"}) {
    const auto stat = parse_proc_stat("7 (" + std::string(name) +
                                      ") S 3 1 1 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99 5 6");
    REQUIRE(stat);
    CHECK(stat->ppid == 3);
    CHECK(stat->own_cpu_ns == 30 * kTickNs);
    CHECK(stat->children_cpu_ns == 70 * kTickNs);
    CHECK(stat->start_ticks == 99);
  }
}

TEST_CASE("a stat line that is cut is none, wherever it is cut") {
  const std::string whole = "7 (sh) S 3 1 1 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99";
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(parse_proc_stat(whole.substr(0, length)));
  }
  CHECK_FALSE(parse_proc_stat("hello"));
  CHECK_FALSE(parse_proc_stat("7 (sh) S x y z"));
}

TEST_CASE("a tree is found from parent to child, and is empty once its root is gone") {
  const FakeNode node;
  for (const int pid : {10, 11, 12, 13}) node.process(pid, "/");
  node.children(10, "11 12 ");
  node.children(12, "13 ");
  ProcTree tree(node.proc(), 10);
  CHECK(tree.pids() == std::vector<int>{10, 11, 12, 13});
  node.end(10);
  CHECK(tree.pids().empty());
}

TEST_CASE("CPU time is what live processes used and what their children had") {
  const FakeNode node;
  node.process(10, "/");
  node.process(11, "/", 10);
  node.children(10, "11 ");
  node.stat(10, 1, 5, 7);
  node.stat(11, 10, 3, 0);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 15 * kTickNs);
}

TEST_CASE("a child that its parent waited for is counted once") {
  const FakeNode node;
  node.process(10, "/");
  node.process(11, "/", 10);
  node.children(10, "11 ");
  node.stat(11, 10, 100, 0);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 100 * kTickNs);
  node.end(11);
  node.children(10, "");
  node.stat(10, 1, 0, 110);
  CHECK(cpu.cpu_time_ns() == 110 * kTickNs);
}

TEST_CASE("a child and its parent that end between two reads are counted once") {
  const FakeNode node;
  for (const int pid : {10, 11, 12}) node.process(pid, "/", pid - 1);
  node.children(10, "11 ");
  node.children(11, "12 ");
  node.stat(12, 11, 100, 0);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 100 * kTickNs);
  node.end(11);
  node.end(12);
  node.children(10, "");
  node.stat(10, 1, 0, 100);  // 11 waited for 12, then 10 for 11
  CHECK(cpu.cpu_time_ns() == 100 * kTickNs);
}

TEST_CASE("a child that nobody waited for keeps what it was seen to use") {
  const FakeNode node;
  node.process(10, "/");
  node.process(11, "/", 10);
  node.children(10, "11 ");
  node.stat(11, 10, 100, 0);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 100 * kTickNs);
  node.end(11);  // ignored SIGCHLD: the kernel gives its time to nobody
  node.children(10, "");
  node.stat(10, 1, 5, 0);
  CHECK(cpu.cpu_time_ns() == 105 * kTickNs);
  CHECK(cpu.cpu_time_ns() == 105 * kTickNs);
}

TEST_CASE("a process id that is used again is another process") {
  const FakeNode node;
  node.process(10, "/");
  node.process(11, "/", 10);
  node.children(10, "11 ");
  node.stat(11, 10, 100, 0, 5);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 100 * kTickNs);
  node.stat(11, 10, 1, 0, 6);
  CHECK(cpu.cpu_time_ns() == 101 * kTickNs);
}

TEST_CASE("CPU time of a tree never goes down") {
  const FakeNode node;
  node.process(10, "/");
  node.stat(10, 1, 50, 0);
  ProcCpu cpu(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == 50 * kTickNs);
  node.stat(10, 1, 20, 0);
  CHECK(cpu.cpu_time_ns() == 50 * kTickNs);
}

TEST_CASE("a tree that is gone has no CPU time and no memory") {
  const FakeNode node;
  ProcCpu cpu(node.proc(), 10);
  ProcMemory memory(node.proc(), 10);
  CHECK(cpu.cpu_time_ns() == std::nullopt);
  CHECK(memory.memory() == std::nullopt);
  CHECK(memory.current_bytes() == std::nullopt);
}

TEST_CASE("memory is summed over the tree, and the unknown parts are NULL") {
  const FakeNode node;
  node.process(10, "/");
  node.process(11, "/", 10);
  node.children(10, "11 ");
  ProcMemory source(node.proc(), 10);
  const auto memory = source.memory();
  REQUIRE(memory);
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  CHECK(memory->current == 2 * 50 * page);
  CHECK(memory->anon == 2 * 30 * page);
  CHECK(memory->file == std::nullopt);
  CHECK(memory->peak == std::nullopt);
  CHECK(source.current_bytes() == 2 * 50 * page);
}

TEST_CASE("a statm that is cut or garbage is passed over") {
  const FakeNode node;
  node.process(10, "/");
  ProcMemory source(node.proc(), 10);
  for (const char* text : {"", "100", "100 ", "x y z", "\n"}) {
    node.folder().write("proc/10/statm", text);
    CAPTURE(text);
    CHECK(source.memory() == std::nullopt);
  }
}

TEST_CASE("a busy child that was waited for is in its parent's tree") {
  Gate gate;
  const pid_t root = start_child([&] {
    wait_for(start_child([] { return burn(60'000'000); }));
    gate.pass();
    return 0;
  });
  ProcCpu cpu("/proc", root);
  const bool counted = poll_until([&] { return cpu.cpu_time_ns().value_or(0) >= 40'000'000; });
  CHECK(counted);
  const std::int64_t then = cpu.cpu_time_ns().value_or(0);
  CHECK(then < 200'000'000);
  gate.open();
  CHECK(wait_for(root) == 0);
  CHECK(cpu.cpu_time_ns() == std::nullopt);
}

TEST_CASE("a tree of forks is found whole while it lives") {
  Gate gate;
  const pid_t root = start_child([&] {
    const pid_t child = start_child([&] {
      const pid_t grandchild = start_child([&] {
        gate.pass();
        return 0;
      });
      gate.pass();
      return wait_for(grandchild);
    });
    gate.pass();
    return wait_for(child);
  });
  ProcTree tree("/proc", root);
  CHECK(poll_until([&] { return tree.pids().size() == 3; }));
  gate.open();
  CHECK(wait_for(root) == 0);
  CHECK(tree.pids().empty());
}

TEST_CASE("memory that a process touches shows in its tree") {
  Gate touched;
  Gate gate;
  constexpr std::size_t kBytes = 32 << 20;
  const pid_t root = start_child([&] {
    void* const block =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(block, 1, kBytes);
    gate.pass();
    return 0;
  });
  ProcMemory source("/proc", root);
  CHECK(poll_until([&] {
    const auto now = source.memory();
    return now && now->anon.value_or(0) >= static_cast<std::int64_t>(kBytes);
  }));
  gate.open();
  CHECK(wait_for(root) == 0);
}
