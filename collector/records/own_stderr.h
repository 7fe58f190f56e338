// libslurm writes its own errors to stderr, and names no public way to stop it (log_init and
// log_alter are exported, but take a structure by value whose size differs between releases). Ours
// are one line, and the lines of other threads must not be lost meanwhile: so the calls run in a
// thread whose table of descriptors is its own.
#pragma once

#include <functional>

namespace sphase {

/// Runs `call` in a thread of its own, in which descriptor 2 leads to /dev/null, and waits for it.
/// Other threads keep theirs. Descriptors that `call` opens are closed with the thread; those that
/// were open before can be used in it. Where the kernel refuses (a seccomp filter without
/// unshare(2)), libslurm's lines are seen. Cost: 30 µs. An exception in `call` ends the process.
void without_stderr(const std::function<void()>& call);

}  // namespace sphase
