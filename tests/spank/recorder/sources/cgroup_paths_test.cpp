#include "spank/recorder/sources/cgroup_paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/common/tools.h"

using sphase::CgroupMount;
using sphase::CgroupTree;
using sphase::is_below;
using sphase::parse_mountinfo;
using sphase::parse_proc_cgroup;
using sphase::testing::TempFolder;

namespace {

constexpr const char* kV1Mounts =
    "25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "31 24 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:13 - cgroup cgroup rw,cpu,cpuacct\n"
    "36 31 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:14 - cgroup cgroup rw,memory\n"
    "37 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup "
    "rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n";
constexpr const char* kV1Process =
    "11:memory:/slurm/uid_1000/job_42/step_0/task_0\n"
    "5:cpu,cpuacct:/slurm/uid_1000/job_42/step_0/task_0\n"
    "1:name=systemd:/system.slice/slurmd.service\n";

constexpr const char* kV2Mounts =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

/// A process with one /proc/<pid>/cgroup, below mounts as told.
struct FakeProc {
  explicit FakeProc(const char* mounts) { folder.write("self/mountinfo", mounts); }
  CgroupTree tree(const char* cgroup_of_7) {
    folder.write("7/cgroup", cgroup_of_7);
    return CgroupTree::read(folder.path());
  }
  TempFolder folder;
};

}  // namespace

TEST_CASE("cgroup v1: each controller has its own mount and path") {
  FakeProc proc(kV1Mounts);
  const CgroupTree tree = proc.tree(kV1Process);
  CHECK(tree.directory(7, "memory") == "/sys/fs/cgroup/memory/slurm/uid_1000/job_42/step_0/task_0");
  CHECK(tree.directory(7, "cpuacct") ==
        "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_42/step_0/task_0");
  CHECK(tree.directory(7, "cpu") == tree.directory(7, "cpuacct"));
  CHECK(tree.directory(7, "freezer") == std::nullopt);
  CHECK(tree.directory(7, "") == std::nullopt);
}

TEST_CASE("mount options are not taken for controllers") {
  const auto mounts = parse_mountinfo(kV1Mounts);
  REQUIRE(mounts.size() == 3);
  CHECK(mounts[0].controllers == std::vector<std::string>{"cpu", "cpuacct"});
  CHECK(mounts[1].controllers == std::vector<std::string>{"memory"});
  CHECK(mounts[2].controllers == std::vector<std::string>{"name=systemd"});
}

TEST_CASE("cgroup v2: one path for everything") {
  FakeProc proc(kV2Mounts);
  const CgroupTree tree =
      proc.tree("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n");
  CHECK(tree.directory(7, "") ==
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42/step_0/user/task_0");
  CHECK(tree.directory(7, "memory") == std::nullopt);
  REQUIRE(tree.mount_of("") != nullptr);
  CHECK(tree.mount_of("")->unified);
  CHECK(tree.mount_of("")->controllers.empty());
}

TEST_CASE("job directories named by SLUID, or prefixed by a node, are taken as the kernel says") {
  FakeProc proc(kV2Mounts);
  for (const char* path : {"/system.slice/slurmstepd.scope/s6SB2YBPGF4N00/step_0/user/task_0",
                           "/system.slice/n2_slurmstepd.scope/job_42/step_batch/user/task_0",
                           "/slurm_n17/uid_0/job_3/step_extern"}) {
    const CgroupTree tree = proc.tree((std::string("0::") + path + "\n").c_str());
    CHECK(tree.directory(7, "") == std::string("/sys/fs/cgroup") + path);
  }
}

TEST_CASE("several slurmd on one host: each process has the path of its own node") {
  FakeProc proc(kV1Mounts);
  proc.folder.write("8/cgroup", "11:memory:/slurm_n2/uid_0/job_42/step_0\n");
  const CgroupTree tree = proc.tree("11:memory:/slurm_n1/uid_0/job_42/step_0\n");
  CHECK(tree.path(7, "memory") == "/slurm_n1/uid_0/job_42/step_0");
  CHECK(tree.path(8, "memory") == "/slurm_n2/uid_0/job_42/step_0");
}

TEST_CASE("hybrid: v1 controllers beside a unified hierarchy") {
  FakeProc proc((std::string(kV1Mounts) +
                 "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n")
                    .c_str());
  const CgroupTree tree = proc.tree((std::string(kV1Process) + "0::/init.scope\n").c_str());
  CHECK(tree.directory(7, "") == "/sys/fs/cgroup/unified/init.scope");
  CHECK(tree.directory(7, "memory") == "/sys/fs/cgroup/memory/slurm/uid_1000/job_42/step_0/task_0");
}

TEST_CASE("in a container only a part of the hierarchy is mounted") {
  FakeProc proc("36 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n");
  CHECK(proc.tree("11:memory:/docker/abc/job_1\n").directory(7, "memory") ==
        "/sys/fs/cgroup/memory/job_1");
  CHECK(proc.tree("11:memory:/docker/abc\n").directory(7, "memory") == "/sys/fs/cgroup/memory");
  // "/docker/abcd" is another container, not below this one.
  CHECK(proc.tree("11:memory:/docker/abcd/x\n").directory(7, "memory") == std::nullopt);
  CHECK(proc.tree("11:memory:/\n").directory(7, "memory") == std::nullopt);
}

TEST_CASE("a path outside of our cgroup namespace has no directory here") {
  FakeProc proc(kV2Mounts);
  CHECK(proc.tree("0::/../job_42/step_0\n").directory(7, "") == std::nullopt);
}

TEST_CASE("a process in the root group has the mount point itself") {
  FakeProc proc(kV2Mounts);
  CHECK(proc.tree("0::/\n").directory(7, "") == "/sys/fs/cgroup");
}

TEST_CASE("a process that is gone has no directory and no paths") {
  FakeProc proc(kV2Mounts);
  const CgroupTree tree = proc.tree("0::/a\n");
  CHECK(tree.directory(8, "") == std::nullopt);
  CHECK(tree.path(8, "") == std::nullopt);
  CHECK(tree.paths(8).empty());
}

TEST_CASE("spaces in a mount point are unescaped") {
  const auto mounts =
      parse_mountinfo("30 23 0:26 /a\\040b /mnt/c\\134d\\040e rw shared:9 - cgroup2 cgroup2 rw\n");
  REQUIRE(mounts.size() == 1);
  CHECK(mounts[0].root == "/a b");
  CHECK(mounts[0].mount_point == "/mnt/c\\d e");
}

TEST_CASE("a colon in a cgroup's name is part of the path") {
  const auto paths = parse_proc_cgroup("0::/user.slice/a:b:c\n");
  REQUIRE(paths.count("") == 1);
  CHECK(paths.at("") == "/user.slice/a:b:c");
}

TEST_CASE("cut, empty and foreign lines are passed over, wherever they are cut") {
  CHECK(parse_mountinfo("").empty());
  CHECK(parse_proc_cgroup("").empty());
  CHECK(parse_mountinfo("\n\n- \n - cgroup\nhello - cgroup2 cgroup2 rw\n").empty());
  CHECK(parse_proc_cgroup("hello\n1:memory\n2:cpu:relative\n::\n:\n").empty());
  for (const std::string& whole : {std::string(kV1Mounts), std::string(kV2Mounts)}) {
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      for (const CgroupMount& mount : parse_mountinfo(whole.substr(0, length))) {
        CHECK(mount.mount_point.front() == '/');
      }
    }
  }
  const std::string process = kV1Process;
  for (std::size_t length = 0; length <= process.size(); ++length) {
    for (const auto& [controller, path] : parse_proc_cgroup(process.substr(0, length))) {
      CHECK(path.front() == '/');
    }
  }
}

TEST_CASE("the last line needs no newline") {
  CHECK(parse_mountinfo("30 23 0:26 / /cg rw - cgroup2 cgroup2 rw").size() == 1);
  CHECK(parse_proc_cgroup("0::/a").size() == 1);
}

TEST_CASE("random bytes are never a mount, nor a crash") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = " :/-\\\ncgroup2rw0"[random() % 17];
    for (const CgroupMount& mount : parse_mountinfo(text)) {
      CHECK((mount.unified || std::count(text.begin(), text.end(), 'c') > 0));
    }
    (void)parse_proc_cgroup(text);
  }
}

TEST_CASE("a group is below another only at a slash") {
  CHECK(is_below("/a/b", "/a"));
  CHECK(is_below("/a", "/"));
  CHECK_FALSE(is_below("/ab", "/a"));
  CHECK_FALSE(is_below("/a", "/a"));
  CHECK_FALSE(is_below("/", "/"));
  CHECK_FALSE(is_below("/a", "/a/b"));
}
