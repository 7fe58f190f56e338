// One process, many threads, forks.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "marker/internal.h"
#include "marker/sphase.h"
#include "tests/marker/fake_reader.h"
#include "tests/marker/in_child.h"

using sphase::testing::Answer;
using sphase::testing::FakeReader;
using sphase::testing::FakeSetup;
using sphase::testing::in_child;
using sphase::testing::Marker;

namespace {

int wait_for(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/// Every thread begins and ends `pairs` nested pairs.
void mark_from_threads(int threads, int pairs) {
  std::vector<std::thread> all;
  std::atomic<int> ready = 0;
  all.reserve(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      for (int i = 0; i < pairs; ++i) {
        sphase_begin("outer");
        sphase_begin("inner");
        sphase_end("inner");
        sphase_end("outer");
      }
    });
  }
  for (auto& thread : all) thread.join();
}

/// Replays each thread's markers; true if every depth is the number of phases open.
bool depths_are_right(const std::vector<Marker>& markers) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> open;
  for (const Marker& marker : markers) {
    int& depth = open[{marker.raw.client, marker.raw.tid}];
    if (marker.raw.type == SPHASE_BEGIN && marker.raw.depth != depth++) return false;
    if (marker.raw.type == SPHASE_END && marker.raw.depth != --depth) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("ten threads that mark at once all arrive, from the first marker on, at right depths") {
  FakeSetup setup;
  setup.capacity = 65536;
  FakeReader reader(setup);
  const int pairs = 1000;
  CHECK(in_child(reader, [] {
          mark_from_threads(10, pairs);
          return 0;
        }) == 0);
  const auto markers = reader.markers(10 * 4 * pairs);
  CHECK(reader.dropped() == 0);
  CHECK(markers.size() == 10 * 4 * pairs);
  CHECK(depths_are_right(markers));
  std::set<std::uint32_t> threads;
  for (const Marker& marker : markers) threads.insert(marker.raw.tid);
  CHECK(threads.size() == 10);
  CHECK(reader.clients() == 1);
}

TEST_CASE("threads that mark while another one joins in vain wait no longer than it") {
  FakeSetup setup;
  setup.answer = Answer::kNothing;
  FakeReader reader(setup);
  CHECK(in_child(reader, [] {
          const auto start = sphase_now_ns(CLOCK_MONOTONIC);
          mark_from_threads(10, 10);
          NEED(sphase_now_ns(CLOCK_MONOTONIC) - start < 1'000'000'000);
          NEED(sphase_active() == 0);
          return 0;
        }) == 0);
}

TEST_CASE("a forked child is a client of its own with no phase open") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          NEED(sphase_begin("parent") == 0);
          NEED(sphase_begin("inner") == 1);
          const pid_t child = fork();
          if (child == 0) {
            const bool right = sphase_begin("child") == 0 && sphase_end("child") == 0;
            _exit(right && sphase_active() == 1 ? 0 : 1);
          }
          NEED(wait_for(child) == 0);
          NEED(sphase_end("inner") == 1);
          NEED(sphase_end("parent") == 0);
          return 0;
        }) == 0);
  const auto markers = reader.markers(6);
  REQUIRE(markers.size() == 6);
  CHECK(reader.clients() == 2);
  CHECK(markers[2].text == "child");
  CHECK(markers[2].raw.depth == 0);
  CHECK(markers[2].raw.client == 2);
  CHECK(markers[2].raw.cpu_time_ns > 0);
  CHECK(markers[2].raw.tid != markers[0].raw.tid);
  CHECK(markers[4].text == "inner");
  CHECK(markers[4].raw.client == 1);
  CHECK(markers[4].raw.depth == 1);
}

TEST_CASE("an end in a forked child does not close its parent's phase") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("parent");
          const pid_t child = fork();
          if (child == 0) _exit(sphase_end("parent") == 0 ? 0 : 1);
          NEED(wait_for(child) == 0);
          NEED(sphase_end("parent") == 0);
          return 0;
        }) == 0);
  const auto markers = reader.markers(3);
  REQUIRE(markers.size() == 3);
  CHECK(markers[1].raw.client == 2);
  CHECK(markers[2].raw.client == 1);
}

TEST_CASE("a child that never marks does not join") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("parent");
          const pid_t quiet = fork();
          if (quiet == 0) _exit(0);
          NEED(wait_for(quiet) == 0);
          const pid_t other = fork();
          if (other == 0) {
            execl("/bin/true", "true", nullptr);
            _exit(1);
          }
          NEED(wait_for(other) == 0);
          sphase_end("parent");
          return 0;
        }) == 0);
  CHECK(reader.markers(2).size() == 2);
  CHECK(reader.clients() == 1);
}

TEST_CASE("a program run by a marked one joins by itself") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("parent");
          const pid_t child = fork();
          if (child == 0) {
            execl(SPHASE_TEST_COMMAND, "sphase", "begin", "from-exec", nullptr);
            _exit(1);
          }
          NEED(wait_for(child) == 0);
          sphase_end("parent");
          return 0;
        }) == 0);
  const auto markers = reader.markers(3);
  REQUIRE(markers.size() == 3);
  CHECK(markers[1].text == "from-exec");
  CHECK(markers[1].raw.client == 2);
}

TEST_CASE("a chain of forks maps the ring over the old one, not beside it") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("first");
          const sphase_ring* ring = sphase_page.process.ring;
          for (int generation = 0; generation < 5; ++generation) {
            const pid_t child = fork();
            if (child > 0) return wait_for(child) == 0 ? 0 : __LINE__;
            sphase_begin("next");
            if (sphase_active() != 1 || sphase_page.process.ring != ring) _exit(1);
          }
          _exit(0);
        }) == 0);
  CHECK(reader.clients() == 6);
}

TEST_CASE("where the kernel cannot wipe a page on fork, a child is told by its pid") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_fork_keeps_page = 1;
          NEED(sphase_begin("parent") == 0);
          NEED(sphase_active() == 1);
          const pid_t child = fork();
          if (child == 0) {
            const bool right = sphase_begin("child") == 0 && sphase_begin("inner") == 1;
            _exit(right && sphase_end("child") == 0 ? 0 : 1);
          }
          NEED(wait_for(child) == 0);
          NEED(sphase_end("parent") == 0);
          return 0;
        }) == 0);
  const auto markers = reader.markers(5);
  REQUIRE(markers.size() == 5);
  CHECK(markers[1].raw.client == 2);
  CHECK(markers[1].raw.depth == 0);
  CHECK(markers[1].raw.cpu_time_ns > 0);  // its own, however soon after its parent's
  CHECK(markers[4].raw.client == 1);
  CHECK(reader.clients() == 2);
}

TEST_CASE("descriptors that the program closes and uses again are never written to") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("solve");
          for (int fd = 3; fd < 100; ++fd) close(fd);
          std::vector<int> files(20);
          for (int& fd : files) fd = memfd_create("own", 0);
          for (int i = 0; i < 1000; ++i) {
            sphase_begin("inner");
            sphase_end("inner");
          }
          for (const int fd : files) NEED(lseek(fd, 0, SEEK_END) == 0);
          NEED(sphase_active() == 1);
          return 0;
        }) == 0);
  CHECK(reader.markers(2001).size() == 2001);
}

TEST_CASE("changing the environment after the first marker changes nothing") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("solve");
          unsetenv(SPHASE_SOCKET_ENV);
          sphase_end("solve");
          NEED(sphase_active() == 1);
          setenv(SPHASE_SOCKET_ENV, "/nonexistent", 1);
          NEED(sphase_active() == 1);
          return 0;
        }) == 0);
  CHECK(reader.markers(2).size() == 2);
}

TEST_CASE("a recorder that is gone does not disturb the program") {
  FakeReader reader;
  int gone[2];
  REQUIRE(pipe(gone) == 0);
  const auto body = [&] {
    sphase_begin("solve");
    char byte = 0;
    NEED(read(gone[0], &byte, 1) == 1);
    for (int i = 0; i < 100'000; ++i) {
      sphase_begin("inner");
      sphase_end("inner");
    }
    NEED(sphase_end("solve") == 0);
    const pid_t child = fork();
    if (child == 0) {
      sphase_begin("child");
      _exit(sphase_active());
    }
    NEED(wait_for(child) == 0);
    return 0;
  };
  CHECK(in_child(reader.path(), body, [&] {
          reader.serve();
          reader.markers(1);
          reader.stop();
          CHECK(write(gone[1], "x", 1) == 1);
        }) == 0);
  CHECK(reader.dropped() > 0);
  close(gone[0]);
  close(gone[1]);
}

TEST_CASE("a thread that is cancelled while it joins does not leave the others waiting") {
  FakeSetup setup;
  setup.answer_after_ms = 20;
  FakeReader reader(setup);
  CHECK(in_child(reader, [] {
          pthread_t thread{};
          NEED(pthread_create(
                   &thread, nullptr,
                   [](void*) -> void* {
                     sphase_begin("solve");
                     pthread_testcancel();
                     return nullptr;
                   },
                   nullptr) == 0);
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          pthread_cancel(thread);
          pthread_join(thread, nullptr);
          NEED(sphase_active() == 1);
          return 0;
        }) == 0);
}

TEST_CASE("ten million pairs with a slow reader do not hang, and are counted") {
  FakeSetup setup;
  setup.nap_ms = 5;
  FakeReader reader(setup);
  reader.only_count();
  const std::uint64_t pairs = sphase::testing::kSanitized ? 300'000 : 10'000'000;
  CHECK(in_child(reader, [&] {
          for (std::uint64_t i = 0; i < pairs; ++i) {
            NEED(sphase_begin("hot") == 0);
            NEED(sphase_end("hot") == 0);
          }
          return 0;
        }) == 0);
  reader.all_markers();
  CHECK(reader.dropped() > 0);
  CHECK(reader.counted() > 0);
  // The end of a dropped begin is neither recorded nor counted as dropped.
  CHECK(reader.counted() + reader.dropped() <= 2 * pairs);
  CHECK(reader.counted() + reader.dropped() >= pairs);
}
