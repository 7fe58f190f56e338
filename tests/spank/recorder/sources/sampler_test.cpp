#include "spank/recorder/sources/sampler.h"

#include <doctest/doctest.h>

#include "tests/spank/recorder/sources/fake_node.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr int kStepd = 5;
constexpr int kOutside = 6;
const std::string kStep = "/slurm/uid_1/job_2/step_0";

std::string task_group(int task) { return kStep + "/task_" + std::to_string(task); }

/// Two tasks, pids 10 and 11, each in a group of its own.
struct TwoTasks : FakeNode {
  TwoTasks() {
    io(kStepd, 0, 0);
    process(kOutside, "/");
    process(10, task_group(0), kStepd);
    process(11, task_group(1), kStepd);
    group(task_group(0), 1'000'000, 100, "10\n");
    group(task_group(1), 2'000'000, 200, "11\n");
  }
  Sampler sampler() {
    Sampler sampler(tree(), kStepd);
    sampler.attach(0, 10, kOutside);
    sampler.attach(1, 11, kOutside);
    return sampler;
  }
};

}  // namespace

TEST_CASE("a sample adds up the groups of all tasks") {
  TwoTasks node;
  node.io(10, 7, 0);
  Sampler sampler = node.sampler();
  const SampleRow row = sampler.sample("tick");
  CHECK(std::string(row.kind) == "tick");
  CHECK(row.cpu_time_ns == 3'000'000);
  CHECK(row.memory.current == 300);
  CHECK(row.memory.anon == 300);
  CHECK(row.processes == 2);
  REQUIRE(row.io);
  CHECK(row.io->read_bytes == 7);
  CHECK(row.time_ns > 0);
  CHECK(sampler.cpu_tier().source == "cgroup1 cpuacct");
  CHECK(sampler.memory_tier().source == "cgroup1 memory");
}

TEST_CASE("tasks that share one group count it once, and have no CPU time of their own") {
  TwoTasks node;
  node.process(11, task_group(0), kStepd);
  node.group(task_group(0), 1'000'000, 100, "10\n11\n");
  Sampler sampler = node.sampler();
  const SampleRow row = sampler.sample("tick");
  CHECK(row.cpu_time_ns == 1'000'000);
  CHECK(row.memory.current == 100);
  CHECK(row.processes == 2);
  CHECK_FALSE(sampler.task_cpu(0));
  CHECK_FALSE(sampler.task_cpu(1));
}

TEST_CASE("a task alone in its group has its CPU time and the source's name") {
  TwoTasks node;
  Sampler sampler = node.sampler();
  const auto cpu = sampler.task_cpu(1);
  REQUIRE(cpu);
  CHECK(cpu->time_ns == 2'000'000);
  CHECK(std::string(cpu->source) == "cgroup");
  CHECK_FALSE(sampler.task_cpu(7));
}

TEST_CASE("a group that vanished keeps its last CPU time, and its memory is not 0 but gone") {
  TwoTasks node;
  Sampler sampler = node.sampler();
  (void)sampler.sample("tick");
  // An emptied file reads like that of a removed group.
  node.folder().write("cg/cpuacct" + task_group(0) + "/cpuacct.usage", "");
  node.folder().write("cg/memory" + task_group(0) + "/memory.usage_in_bytes", "");
  const SampleRow row = sampler.sample("tick");
  CHECK(row.cpu_time_ns == 3'000'000);
  CHECK(row.memory.current == 200);
  CHECK(row.memory.peak == 300);  // its high-water mark still counts
  CHECK(sampler.task_cpu(0)->time_ns == 1'000'000);
}

TEST_CASE("when every group is gone, memory is NULL and CPU time stays") {
  TwoTasks node;
  Sampler sampler = node.sampler();
  (void)sampler.sample("tick");
  for (const int task : {0, 1}) {
    node.folder().write("cg/cpuacct" + task_group(task) + "/cpuacct.usage", "");
    node.folder().write("cg/memory" + task_group(task) + "/memory.usage_in_bytes", "");
  }
  node.remove_group(task_group(0));
  node.remove_group(task_group(1));
  const SampleRow row = sampler.sample("end");
  CHECK(row.cpu_time_ns == 3'000'000);
  CHECK(row.memory.current == std::nullopt);
  CHECK(row.memory.anon == std::nullopt);
  CHECK(row.processes == 0);
}

TEST_CASE("a group that was never readable is NULL, not 0") {
  TwoTasks node;
  Sampler sampler(node.tree(), kStepd);
  const SampleRow row = sampler.sample("tick");
  CHECK(row.cpu_time_ns == std::nullopt);
  CHECK(row.memory.current == std::nullopt);
  CHECK(sampler.current_bytes() == std::nullopt);
}

TEST_CASE("CPU time never goes down, whatever the file says") {
  TwoTasks node;
  Sampler sampler = node.sampler();
  CHECK(sampler.sample("tick").cpu_time_ns == 3'000'000);
  node.group(task_group(0), 500, 100, "10\n");
  CHECK(sampler.sample("tick").cpu_time_ns == 3'000'000);
}

TEST_CASE("a process belongs to the task that is its ancestor, whatever it claims") {
  TwoTasks node;
  node.process(20, task_group(1), 11);
  node.process(21, task_group(1), 20);
  Sampler sampler = node.sampler();
  CHECK(sampler.task_of_pid(10) == 0u);
  CHECK(sampler.task_of_pid(21) == 1u);
}

TEST_CASE("a daemon that left its parents belongs to the task whose group it is in") {
  TwoTasks node;
  node.process(30, task_group(1), 1);
  node.group(task_group(1), 1, 1, "11\n30\n");
  Sampler sampler = node.sampler();
  CHECK(sampler.task_of_pid(30) == 1u);
}

TEST_CASE("a process of no task is refused, where there are several tasks") {
  TwoTasks node;
  node.process(40, "/elsewhere", 1);
  Sampler sampler = node.sampler();
  CHECK(sampler.task_of_pid(40) == std::nullopt);
  CHECK(sampler.task_of_pid(0) == std::nullopt);
  CHECK(sampler.task_of_pid(999) == std::nullopt);
}

TEST_CASE("a group that tasks share does not tell whose process it is") {
  TwoTasks node;
  node.process(11, task_group(0), kStepd);
  node.process(30, task_group(0), 1);
  node.group(task_group(0), 1, 1, "10\n11\n30\n");
  Sampler sampler = node.sampler();
  CHECK(sampler.task_of_pid(30) == std::nullopt);
}

TEST_CASE("a tree of parents that goes round ends") {
  TwoTasks node;
  node.process(50, "/x", 51);
  node.process(51, "/x", 50);
  Sampler sampler = node.sampler();
  CHECK(sampler.task_of_pid(50) == std::nullopt);
}

TEST_CASE("without cgroups the tiers are those of /proc, with their reasons") {
  const FakeNode node(FakeNode::Kind::kNone);
  node.process(10, "");
  node.process(kOutside, "");
  Sampler sampler(node.tree(), kStepd);
  sampler.attach(0, 10, kOutside);
  CHECK(sampler.cpu_tier().source == "proc stat");
  CHECK(sampler.cpu_tier().reason != "");
  CHECK(sampler.memory_tier().source == "proc statm");
  CHECK(sampler.task_cpu(0)->source == std::string("proc"));
}
