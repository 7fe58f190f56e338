// A test body in a process of its own: what the marker knows, it knows for a whole process. A child
// of fork knows nothing yet.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "tests/marker/fake_reader.h"

namespace sphase::testing {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

/// Inside a body: leaves it with the number of the line where the condition does not hold.
#define NEED(condition) \
  if (!(condition)) return __LINE__

/// Runs `body` in a child with SPHASE_SOCKET = `socket` (unset if empty), and `meanwhile` here.
/// Returns what the body returned: 0, or the line of the NEED that failed; -1 if the child was
/// killed or took 50 s.
template <typename Body, typename Meanwhile>
int in_child(const std::string& socket, Body body, Meanwhile meanwhile) {
  auto* line = static_cast<int*>(
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *line = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(50);
    if (socket.empty()) {
      unsetenv(SPHASE_SOCKET_ENV);
    } else {
      setenv(SPHASE_SOCKET_ENV, socket.c_str(), 1);
    }
    *line = body();
    _exit(0);
  }
  meanwhile();
  int status = -1;
  waitpid(child, &status, 0);
  const int returned = status == 0 ? *line : -1;
  munmap(line, sizeof(int));
  return returned;
}

template <typename Body>
int in_child(const std::string& socket, Body body) {
  return in_child(socket, body, [] {});
}

/// The same with the socket of `reader`, which begins to serve once the child is there.
template <typename Body>
int in_child(FakeReader& reader, Body body) {
  return in_child(reader.path(), body, [&reader] { reader.serve(); });
}

}  // namespace sphase::testing
