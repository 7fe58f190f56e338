// Which sources a task gets, and that the recorder steps out of the job's groups.
#include <doctest/doctest.h>

#include "spank/recorder/own_process.h"
#include "spank/recorder/sources/counter_source.h"
#include "tests/spank/recorder/sources/fake_node.h"

using namespace sphase;
using sphase::testing::FakeNode;
using sphase::testing::text_of;

namespace {
constexpr int kTask = 100;
constexpr int kStepd = 50;
constexpr int kOutside = 60;
const std::string kTaskGroup = "/slurm/uid_1/job_2/step_0/task_0";
}  // namespace

TEST_CASE("a task in a group of its own is read from there, v1 and v2 alike") {
  for (const auto kind : {FakeNode::Kind::kV1, FakeNode::Kind::kV2}) {
    const FakeNode node(kind);
    node.process(kTask, kTaskGroup);
    node.process(kOutside, "/system.slice/slurmd.service");
    node.group(kTaskGroup, 5'000'000, 4096, "100\n101\n");
    const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
    REQUIRE(sources.cpu);
    CHECK(std::string(sources.cpu->tier()).starts_with("cgroup"));
    CHECK(sources.cpu->cpu_time_ns() == 5'000'000);
    CHECK(sources.cpu_reason == "");
    CHECK(sources.memory->memory()->anon == 4096);
    CHECK(sources.memory_reason == "");
    CHECK(sources.processes->pids() == std::vector<int>{100, 101});
  }
}

TEST_CASE("tasks of one group have one key, tasks of two have two") {
  const FakeNode node;
  node.process(kTask, kTaskGroup);
  node.process(kTask + 1, kTaskGroup);
  node.process(kTask + 2, "/slurm/uid_1/job_2/step_0/task_2");
  node.process(kOutside, "/");
  node.group(kTaskGroup, 1, 1, "");
  node.group("/slurm/uid_1/job_2/step_0/task_2", 1, 1, "");
  const TaskSources a = open_task_sources(node.tree(), kTask, kOutside);
  const TaskSources b = open_task_sources(node.tree(), kTask + 1, kOutside);
  const TaskSources c = open_task_sources(node.tree(), kTask + 2, kOutside);
  CHECK(a.cpu_key == b.cpu_key);
  CHECK(a.memory_key == b.memory_key);
  CHECK(a.cpu_key != c.cpu_key);
}

TEST_CASE("a group that holds the recorder too is refused, with a reason") {
  for (const auto kind : {FakeNode::Kind::kV1, FakeNode::Kind::kV2}) {
    for (const char* outside : {"/system.slice/slurmd.service",           // the same
                                "/system.slice/slurmd.service/below"}) {  // or one inside of it
      const FakeNode node(kind);
      node.process(kTask, "/system.slice/slurmd.service");
      node.process(kOutside, outside);
      node.group("/system.slice/slurmd.service", 1, 1, "100\n");
      const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
      CHECK(std::string(sources.cpu->tier()) == "proc stat");
      CHECK(sources.cpu_reason.find("Slurm keeps no cgroup v") != std::string::npos);
      CHECK(std::string(sources.memory->tier()) == "proc statm");
      CHECK(sources.memory_reason.find("Slurm keeps no cgroup v") != std::string::npos);
      CHECK(sources.processes->pids() == std::vector<int>{kTask});
    }
  }
}

TEST_CASE("a task in the root group has no group of its own") {
  const FakeNode node;
  node.process(kTask, "/");
  node.process(kOutside, "/elsewhere");
  const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
  CHECK(std::string(sources.cpu->tier()) == "proc stat");
  CHECK(sources.cpu_reason != "");
}

TEST_CASE("without any cgroup the reason names what is not mounted") {
  const FakeNode node(FakeNode::Kind::kNone);
  node.process(kTask, "");
  node.process(kOutside, "");
  const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
  CHECK(std::string(sources.cpu->tier()) == "proc stat");
  CHECK(sources.cpu_reason.find("cgroup v1 cpuacct is not mounted") != std::string::npos);
  CHECK(sources.cpu_reason.find("cgroup v2 is not mounted") != std::string::npos);
  CHECK(sources.memory_reason.find("cgroup v1 memory is not mounted") != std::string::npos);
}

TEST_CASE("a group whose files cannot be read gives way to /proc, with a reason") {
  const FakeNode node;
  node.process(kTask, kTaskGroup);
  node.process(kOutside, "/");
  const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
  CHECK(std::string(sources.cpu->tier()) == "proc stat");
  CHECK(sources.cpu_reason.find("cannot read") != std::string::npos);
}

TEST_CASE("a controller that v2 lacks is told, and /proc takes its place alone") {
  const FakeNode node(FakeNode::Kind::kV2);
  node.process(kTask, kTaskGroup);
  node.process(kOutside, "/");
  node.folder().write("cg/unified" + kTaskGroup + "/cpu.stat", "usage_usec 7\n");
  node.folder().write("cg/unified" + kTaskGroup + "/cgroup.procs", "100\n");
  const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
  CHECK(std::string(sources.cpu->tier()) == "cgroup2 cpu.stat");
  CHECK(std::string(sources.memory->tier()) == "proc statm");
  CHECK(sources.memory_reason.find("cgroup v2 has no such controller") != std::string::npos);
}

TEST_CASE("a task that is gone already still gives sources, which know nothing") {
  const FakeNode node;
  node.process(kOutside, "/");
  const TaskSources sources = open_task_sources(node.tree(), kTask, kOutside);
  REQUIRE(sources.cpu);
  CHECK(sources.cpu->cpu_time_ns() == std::nullopt);
  CHECK(sources.memory->memory() == std::nullopt);
  CHECK(sources.processes->pids().empty());
}

TEST_CASE("the recorder leaves each group of the job that it was started in") {
  const FakeNode node;
  node.process(kTask, kTaskGroup);
  node.process(kStepd, "/slurm/uid_1/job_2/step_0");
  node.process(getpid(), "/slurm/uid_1/job_2/step_0");
  for (const char* controller : {"cpuacct", "memory", "freezer"}) {
    node.folder().write("cg/" + std::string(controller) + "/cgroup.procs", "");
  }
  CHECK(leave_job_groups(node.tree(), kStepd, kTask) == "");
  for (const char* controller : {"cpuacct", "memory", "freezer"}) {
    CAPTURE(controller);
    CHECK(text_of(node.group_root(controller) + "/cgroup.procs") == "0");
  }
}

TEST_CASE("the recorder stays where slurmd keeps no group for the job") {
  const FakeNode node;
  node.process(kTask, "/system.slice/slurmd.service");
  node.process(kStepd, "/system.slice/slurmd.service");
  node.process(getpid(), "/system.slice/slurmd.service");
  node.folder().write("cg/memory/cgroup.procs", "");
  CHECK(leave_job_groups(node.tree(), kStepd, kTask) == "");
  CHECK(text_of(node.group_root("memory") + "/cgroup.procs") == "");
}

TEST_CASE("where the recorder cannot leave the job's group, it says so") {
  const FakeNode node(FakeNode::Kind::kV2);
  node.process(kTask, kTaskGroup);
  node.process(kStepd, "/slurm/uid_1/job_2/step_0/slurm");
  node.process(getpid(), "/slurm/uid_1/job_2/step_0/slurm");
  const std::string why = leave_job_groups(node.tree(), kStepd, kTask);
  CHECK(why.find("cannot leave the job's cgroup in " + node.group_root("")) != std::string::npos);
}
