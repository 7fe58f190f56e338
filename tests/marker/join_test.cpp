// What a process finds at $SPHASE_SOCKET, and what it makes of it.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "marker/internal.h"
#include "marker/sphase.h"
#include "tests/marker/fake_reader.h"
#include "tests/marker/in_child.h"

using sphase::testing::Answer;
using sphase::testing::FakeReader;
using sphase::testing::FakeSetup;
using sphase::testing::in_child;

namespace {

std::int64_t elapsed_ms(std::int64_t since_ns) {
  return (sphase_now_ns(CLOCK_MONOTONIC) - since_ns) / 1'000'000;
}

/// Inactive, at the first marker and after, with errno untouched.
int is_inactive() {
  errno = 1234;
  NEED(sphase_begin("solve") == 0);
  NEED(errno == 1234);
  NEED(sphase_active() == 0);
  sphase_value("x", 1);
  sphase_attr("k", "v");
  NEED(sphase_begin("inner") == 1);
  NEED(sphase_end("inner") == 1);
  NEED(sphase_end(nullptr) == 0);
  NEED(sphase_end(nullptr) == 0);
  NEED(errno == 1234);
  return 0;
}

int inactive_with(const FakeSetup& setup) {
  FakeReader reader(setup);
  return in_child(reader, is_inactive);
}

FakeSetup answering(Answer answer) {
  FakeSetup setup;
  setup.answer = answer;
  return setup;
}

/// ms that the first marker took; the least of three tries, since the machine may be busy.
int first_marker_ms(const FakeSetup& setup) {
  int best = 1'000'000;
  for (int i = 0; i < 3; ++i) {
    FakeReader reader(setup);
    best = std::min(best, in_child(reader, [] {
                      const auto start = sphase_now_ns(CLOCK_MONOTONIC);
                      sphase_begin("solve");
                      const auto took = static_cast<int>(elapsed_ms(start));
                      return sphase_active() == 0 ? took : 1'000'000;
                    }));
  }
  return best;
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

void use_all_descriptors() {
  const rlimit limit{64, 64};
  setrlimit(RLIMIT_NOFILE, &limit);
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
}

}  // namespace

TEST_CASE("without SPHASE_SOCKET the marker is off") {
  CHECK(in_child("", is_inactive) == 0);
  CHECK(in_child("", [] {
          setenv(SPHASE_SOCKET_ENV, "", 1);
          return is_inactive();
        }) == 0);
}

TEST_CASE("a socket that does not exist turns the marker off") {
  CHECK(in_child("/nonexistent/socket", is_inactive) == 0);
  CHECK(in_child("/etc/passwd", is_inactive) == 0);
  CHECK(in_child(std::string(5000, 'x'), is_inactive) == 0);
}

TEST_CASE("a socket that accepts and never answers costs 50 ms, once") {
  CHECK(first_marker_ms(answering(Answer::kNothing)) >= 45);
  CHECK(first_marker_ms(answering(Answer::kNothing)) <= 60);
  CHECK(inactive_with(answering(Answer::kNothing)) == 0);
}

TEST_CASE("a socket that never accepts costs 50 ms, once") {
  CHECK(first_marker_ms(answering(Answer::kNoAccept)) <= 60);
  CHECK(inactive_with(answering(Answer::kNoAccept)) == 0);
}

TEST_CASE("a socket that never answers costs a pool of forked workers 50 ms once, not each") {
  FakeReader reader(answering(Answer::kNothing));
  CHECK(in_child(reader, [] {
          sphase_begin("parent");
          const auto start = sphase_now_ns(CLOCK_MONOTONIC);
          for (int i = 0; i < 20; ++i) {
            const pid_t child = fork();
            if (child == 0) {
              sphase_begin("child");
              _exit(sphase_active());
            }
            int status = 0;
            waitpid(child, &status, 0);
            NEED(status == 0);
          }
          NEED(elapsed_ms(start) < 500);
          return 0;
        }) == 0);
}

TEST_CASE("a wrong answer turns the marker off") {
  CHECK(inactive_with(answering(Answer::kHangUp)) == 0);
  CHECK(inactive_with(answering(Answer::kGarbage)) == 0);
  CHECK(inactive_with(answering(Answer::kShort)) == 0);
  CHECK(inactive_with(answering(Answer::kNoDescriptor)) == 0);
  CHECK(inactive_with(answering(Answer::kOtherVersion)) == 0);
}

TEST_CASE("memory that could shrink, is too small or is not a ring is not used") {
  FakeSetup unsealed;
  unsealed.sealed = false;
  CHECK(inactive_with(unsealed) == 0);
  FakeSetup small;
  small.capacity = 64;
  small.told_capacity = 128;
  CHECK(inactive_with(small) == 0);
  small.header_agrees = true;
  CHECK(inactive_with(small) == 0);
  FakeSetup header;
  header.broken_header = true;
  CHECK(inactive_with(header) == 0);
  for (const std::uint32_t capacity : {3U, 100U, 131072U, 0x80000000U, 0xffffffffU}) {
    FakeSetup told;
    told.told_capacity = capacity;
    CHECK(inactive_with(told) == 0);
  }
  for (const std::uint32_t capacity : {3U, 100U, 131072U}) {
    FakeSetup odd;  // as told, but not a size that a ring may have
    odd.capacity = capacity;
    odd.drains = false;
    CHECK(inactive_with(odd) == 0);
  }
  FakeSetup smaller;  // fits, but is not what the ring says of itself
  smaller.told_capacity = 64;
  CHECK(inactive_with(smaller) == 0);
}

TEST_CASE("after joining no descriptor stays open, however many came") {
  for (const Answer answer : {Answer::kWelcome, Answer::kTwoMemfds, Answer::kGarbage}) {
    FakeReader reader(answering(answer));
    CHECK(in_child(reader, [] {
            const int before = open_descriptors();
            sphase_begin("solve");
            NEED(open_descriptors() == before);
            return 0;
          }) == 0);
  }
}

TEST_CASE("a recorder that takes 20 ms to accept and to answer is waited for, through signals") {
  FakeSetup setup;
  setup.accept_after_ms = 10;
  setup.answer_after_ms = 10;
  FakeReader reader(setup);
  CHECK(in_child(reader, [] {
          struct sigaction action {};
          action.sa_handler = [](int) {};
          sigaction(SIGALRM, &action, nullptr);
          const itimerval often{{0, 300}, {0, 300}};
          setitimer(ITIMER_REAL, &often, nullptr);
          errno = 1234;
          sphase_begin("solve");
          NEED(errno == 1234);
          NEED(sphase_active() == 1);
          return 0;
        }) == 0);
  const auto markers = reader.markers(1);
  REQUIRE(markers.size() == 1);
  CHECK(markers[0].text == "solve");
}

TEST_CASE("a signal handler may mark, even while its thread joins") {
  FakeSetup setup;
  setup.answer_after_ms = 20;
  FakeReader reader(setup);
  static volatile std::sig_atomic_t handled = 0;
  CHECK(in_child(reader, [] {
          struct sigaction action {};
          action.sa_handler = [](int) {
            sphase_begin("handler");
            sphase_end("handler");
            handled = handled + 1;
          };
          sigaction(SIGALRM, &action, nullptr);
          const itimerval often{{0, 500}, {0, 500}};
          setitimer(ITIMER_REAL, &often, nullptr);
          const auto start = sphase_now_ns(CLOCK_MONOTONIC);
          NEED(sphase_begin("solve") == 0);
          NEED(sphase_active() == 1);
          for (const int before = handled; handled < before + 20 && elapsed_ms(start) < 10'000;) {
            NEED(sphase_begin("inner") == 1);
            NEED(sphase_end("inner") == 1);
            usleep(1);
          }
          const itimerval never{};
          setitimer(ITIMER_REAL, &never, nullptr);
          NEED(sphase_end("solve") == 0);
          return 0;
        }) == 0);
  const auto markers = reader.all_markers();
  CHECK(std::any_of(markers.begin(), markers.end(),
                    [](const auto& marker) { return marker.text == "handler"; }));
  // "solve" is open from its begin to its end: nothing in between is marked as outside of it.
  for (const auto& marker : markers) CHECK((marker.text == "solve" || marker.raw.depth >= 1));
}

TEST_CASE("signals do not stretch the 50 ms") {
  FakeReader reader(answering(Answer::kNothing));
  CHECK(in_child(reader, [] {
          struct sigaction action {};
          action.sa_handler = [](int) {};
          sigaction(SIGALRM, &action, nullptr);
          const itimerval often{{0, 1000}, {0, 1000}};
          setitimer(ITIMER_REAL, &often, nullptr);
          const auto start = sphase_now_ns(CLOCK_MONOTONIC);
          sphase_begin("solve");
          NEED(elapsed_ms(start) < 200);
          return 0;
        }) == 0);
}

TEST_CASE("a process without a free descriptor is inactive") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          use_all_descriptors();
          return is_inactive();
        }) == 0);
}

TEST_CASE("a process with one free descriptor, enough for the socket alone, is inactive") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          use_all_descriptors();
          close(63);
          NEED(is_inactive() == 0);
          NEED(open("/dev/null", O_RDONLY) == 63);
          return 0;
        }) == 0);
}

TEST_CASE("a process with standard streams closed joins and leaves them closed") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          for (int fd = 0; fd < 3; ++fd) close(fd);
          sphase_begin("solve");
          NEED(sphase_active() == 1);
          for (int fd = 0; fd < 3; ++fd) NEED(fcntl(fd, F_GETFD) < 0);
          return 0;
        }) == 0);
}
