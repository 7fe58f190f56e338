#include "collector/file_lock.h"

#include <doctest/doctest.h>

#include <csignal>
#include <optional>

#include "tests/common/tools.h"

using namespace sphase;
using namespace sphase::testing;

TEST_CASE("a second process does not get the lock, and is told who has it") {
  const TempFolder folder;
  const std::string path = folder / "lock";
  auto lock = FileLock::take(path);
  REQUIRE(lock);
  CHECK(mode_of(path) == 0600);
  const auto again = FileLock::take(path);
  REQUIRE_FALSE(again);
  CHECK(again.error() ==
        path + " is locked by another process (process " + std::to_string(getpid()) + ")");
  CHECK(in_child([&] { return FileLock::take(path, 100) ? 0 : 7; }) == 7);
}

TEST_CASE("the lock is free when its owner is gone, however it went") {
  const TempFolder folder;
  const std::string path = folder / "lock";
  {
    auto lock = FileLock::take(path);
    REQUIRE(lock);
  }
  CHECK(FileLock::take(path));
  const pid_t owner = start_child([&] {
    auto lock = FileLock::take(path);
    if (lock) std::raise(SIGKILL);
    return 1;
  });
  CHECK(wait_for(owner) == 128 + SIGKILL);
  CHECK(FileLock::take(path));
}

TEST_CASE("waiting for the lock ends when it becomes free") {
  const TempFolder folder;
  const std::string path = folder / "lock";
  auto first = FileLock::take(path);
  REQUIRE(first);
  std::optional<FileLock> held(std::move(*first));
  const pid_t waiting = start_child([&] {
    held.reset();  // the child's copy of the descriptor; the parent's still holds the lock
    return FileLock::take(path, 5000) ? 0 : 1;
  });
  held.reset();
  CHECK(wait_for(waiting) == 0);
}

TEST_CASE("a lock in a folder that does not exist, or through a link, is an error") {
  const TempFolder folder;
  CHECK(FileLock::take(folder / "none/lock").error().find("No such file") != std::string::npos);
  const auto target = folder.write("target", "keep");
  REQUIRE(symlink(target.c_str(), (folder / "lock").c_str()) == 0);
  CHECK_FALSE(FileLock::take(folder / "lock"));
  CHECK(text_of(target) == "keep");
}
