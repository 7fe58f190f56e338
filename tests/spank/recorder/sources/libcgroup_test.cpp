// Our reading of this host's cgroup mounts against libcgroup's. Nothing but this test links it.
#include <doctest/doctest.h>
#include <libcgroup.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "spank/recorder/sources/cgroup_paths.h"

namespace {

/// Controllers that are mounted, as libcgroup walks them.
std::set<std::string> mounted_controllers() {
  std::set<std::string> names;
  void* handle = nullptr;
  cgroup_mount_point info{};
  int found = cgroup_get_controller_begin(&handle, &info);
  for (; found == 0; found = cgroup_get_controller_next(&handle, &info)) names.insert(info.name);
  cgroup_get_controller_end(&handle);
  return names;
}

}  // namespace

TEST_CASE(
    "the mounts of this host are those that libcgroup finds (needs a cgroup that libcgroup "
    "finds)") {
  if (cgroup_init() != 0) {
    MESSAGE("skipped: libcgroup finds no cgroup here");
    return;
  }
  const sphase::CgroupTree tree = sphase::CgroupTree::read();
  int compared = 0;
  for (const std::string& controller : mounted_controllers()) {
    char* path = nullptr;
    if (cgroup_get_subsys_mount_point(controller.c_str(), &path) != 0) continue;
    const sphase::CgroupMount* mount = tree.mount_of(controller);
    // libcgroup lists what v2 offers by name too; there we have one hierarchy without names.
    if (mount == nullptr) mount = tree.mount_of("");
    REQUIRE(mount != nullptr);
    CAPTURE(controller);
    CHECK(std::filesystem::equivalent(mount->mount_point, path));
    free(path);
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("where this process is agrees with libcgroup (needs a cgroup that libcgroup finds)") {
  if (cgroup_init() != 0) {
    MESSAGE("skipped: libcgroup finds no cgroup here");
    return;
  }
  const sphase::CgroupTree tree = sphase::CgroupTree::read();
  int compared = 0;
  for (const std::string& controller : mounted_controllers()) {
    if (tree.mount_of(controller) == nullptr) continue;
    char* path = nullptr;
    if (cgroup_get_current_controller_path(getpid(), controller.c_str(), &path) != 0) continue;
    CAPTURE(controller);
    CHECK(tree.path(getpid(), controller) == std::string(path));
    free(path);
    ++compared;
  }
  if (compared == 0) MESSAGE("skipped: no cgroup v1 controller is mounted here");
}
