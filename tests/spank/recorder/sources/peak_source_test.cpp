#include "spank/recorder/sources/peak_source.h"

#include <doctest/doctest.h>

#include "spank/recorder/sources/sampler.h"
#include "tests/spank/recorder/sources/fake_node.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr int kStepd = 10, kRecorder = 11, kTask = 12, kOther = 13;
const std::string kStep = "/system.slice/n1_slurmstepd.scope/job_3/step_0";

/// A step as Slurm makes it on v2.
struct Step : FakeNode {
  Step() : FakeNode(Kind::kV2) {
    process(kStepd, kStep + "/slurm");
    process(kRecorder, "/");
    process(kTask, kStep + "/user/task_0");
    process(kOther, kStep + "/user/task_1");
  }
  std::optional<std::string> group(int pid) const {
    return group_of_tasks(tree(), pid, kRecorder, kStepd);
  }
};

}  // namespace

TEST_CASE("the group above a task's own holds all tasks of its step") {
  const Step step;
  CHECK(step.group(kTask) == kStep + "/user");
  CHECK(step.group(kOther) == kStep + "/user");
}

TEST_CASE("a group that holds slurmstepd or the recorder is not the tasks' own") {
  const Step step;
  step.process(kStepd, kStep + "/user");
  CHECK(step.group(kTask) == kStep + "/user/task_0");
  step.process(kStepd, kStep + "/slurm");
  step.process(kRecorder, kStep + "/user/task_7");
  CHECK(step.group(kTask) == kStep + "/user/task_0");
  step.process(kRecorder, kStep + "/user/task_0/inner");
  CHECK(step.group(kTask) == std::nullopt);
}

TEST_CASE("a task in the root group, or without v2, has none") {
  const Step step;
  step.process(kTask, "/");
  CHECK(step.group(kTask) == std::nullopt);
  const FakeNode old(FakeNode::Kind::kV1);
  old.process(kTask, "/job");
  CHECK(group_of_tasks(old.tree(), kTask, kRecorder, kStepd) == std::nullopt);
}

TEST_CASE("where memory.peak is missing or not to be written there is no source") {
  const TempFolder folder;
  CHECK_FALSE(PeakSource::open(folder.path()));
  REQUIRE(symlink("/proc/self/status", (folder / "memory.peak").c_str()) == 0);
  CHECK_FALSE(PeakSource::open(folder.path()));
}

TEST_CASE("tasks in different places have no peak in common") {
  const Step step;
  step.folder().write("cg/unified" + kStep + "/user/memory.peak", "4096\n");
  for (const char* task : {"/user/task_0", "/user/task_1"})
    step.FakeNode::group(kStep + task, 0, 0, "");
  Sampler sampler(step.tree(), kStepd);
  sampler.attach(0, kTask, kRecorder);
  CHECK(sampler.take_peak() == 0);  // a plain file has what was written to it
  sampler.attach(1, kOther, kRecorder);
  CHECK(sampler.take_peak() == 0);
  step.process(kOther, "/system.slice/elsewhere");
  sampler.attach(2, kOther, kRecorder);
  CHECK(sampler.take_peak() == std::nullopt);
}
