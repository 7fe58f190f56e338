#include "spank/recorder/sources/process_io.h"

#include <doctest/doctest.h>

#include "spank/recorder/sources/sampler.h"
#include "tests/spank/recorder/sources/fake_node.h"

using namespace sphase;
using sphase::testing::FakeNode;

namespace {

constexpr int kStepd = 5;

/// slurmstepd that has moved something of its own already.
struct Node : FakeNode {
  Node() { io(kStepd, 1000, 500); }
};

std::int64_t read_bytes(ProcessIo& io, const std::vector<int>& pids) {
  const auto total = io.total(pids);
  REQUIRE(total);
  return total->read_bytes;
}

}  // namespace

TEST_CASE("all four numbers are read") {
  const auto io = parse_io(
      "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
      "cancelled_write_bytes: 7\n");
  REQUIRE(io);
  CHECK(io->read_call_bytes == 1);
  CHECK(io->write_call_bytes == 2);
  CHECK(io->read_bytes == 5);
  CHECK(io->write_bytes == 6);
}

TEST_CASE("an io file that is cut, empty or garbage is none") {
  for (const char* text : {"", "rchar: 1\n", "rchar: 1\nwchar: 2\nread_bytes: 5\n", "garbage",
                           "rchar: x\nwchar: 2\nread_bytes: 5\nwrite_bytes: 6\n"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_io(text));
  }
}

TEST_CASE("what slurmstepd moved before the step is not the step's") {
  Node node;
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {}) == 0);
  node.io(kStepd, 1500, 500);
  io.rebase();
  CHECK(read_bytes(io, {}) == 0);
}

TEST_CASE("live processes are added up") {
  Node node;
  node.io(10, 100, 0);
  node.io(11, 20, 0);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10, 11}) == 120);
  CHECK(io.total({10, 11})->read_call_bytes == 1200);
  CHECK(io.tier().source == "proc io");
  CHECK(io.tier().reason == "");
}

TEST_CASE("a child that its parent waited for is counted once") {
  Node node;
  node.io(10, 100, 0);
  node.io(11, 50, 0);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10, 11}) == 150);
  node.end(11);
  node.io(10, 150, 0);
  CHECK(read_bytes(io, {10}) == 150);
}

TEST_CASE("a task that slurmstepd waited for is counted once") {
  Node node;
  node.io(10, 100, 7);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10}) == 100);
  node.end(10);
  node.io(kStepd, 1100, 507);
  CHECK(read_bytes(io, {}) == 100);
  CHECK(io.total({})->write_bytes == 7);
}

TEST_CASE("a process whose parent is gone leaves the largest sum standing") {
  Node node;
  node.io(10, 100, 0);
  node.io(11, 50, 0);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10, 11}) == 150);
  node.end(11);
  CHECK(read_bytes(io, {10}) == 150);
}

TEST_CASE("counters that go down never take the sum down") {
  Node node;
  node.io(10, 100, 90);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10}) == 100);
  node.io(10, 10, 95);
  CHECK(read_bytes(io, {10}) == 100);
  CHECK(io.total({10})->write_bytes == 95);
  node.io(kStepd, 0, 0);  // below its base
  CHECK(read_bytes(io, {10}) == 100);
}

TEST_CASE("where no io file can be read there is no number but a reason") {
  const FakeNode node;
  ProcessIo io(node.proc(), kStepd);
  CHECK(io.total({10}) == std::nullopt);
  CHECK(io.tier().source == "");
  CHECK(io.tier().reason.find("/proc/PID/io: ") == 0);
}

TEST_CASE("a process without an io file is passed over") {
  Node node;
  node.io(10, 100, 0);
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, {10, 11}) == 100);
}

TEST_CASE("more processes than descriptors allow: the rest is told, not silently left out") {
  Node node;
  std::vector<int> pids;
  for (int pid = 1000; pid < 1300; ++pid) {
    node.io(pid, 1, 0);
    pids.push_back(pid);
  }
  ProcessIo io(node.proc(), kStepd);
  CHECK(read_bytes(io, pids) == static_cast<std::int64_t>(ProcessIo::kMaxProcesses));
  CHECK(io.tier().reason.find("256") != std::string::npos);
}

TEST_CASE("this process's own io is found in the real /proc") {
  ProcessIo io("/proc", getppid());
  const auto total = io.total({getpid()});
  REQUIRE(total);
  CHECK(total->read_call_bytes > 0);
}
