#include "spank/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRecorderLinkFd = 3 };

/* Shared with the two vfork()ed children, which run on our memory one after the other. */
struct spawn_state {
  const char* path;
  int link;
  volatile pid_t recorder;
  volatile int exec_error;
};

/* In the process that becomes the recorder. Only async-signal-safe calls. All signals are still
 * blocked: the recorder unblocks them itself, first thing. */
__attribute__((noreturn)) static void become_recorder(struct spawn_state* state) {
  char* const argv[] = {(char*)"sphase-recorder", NULL};
  char* const envp[] = {(char*)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char*)"LC_ALL=C", NULL};

  /* The link first to a number that nothing below overwrites. */
  const int link = fcntl(state->link, F_DUPFD, kRecorderLinkFd + 1);
  const int null = open("/dev/null", O_RDWR);
  if (link < 0 || null < 0 || chdir("/") != 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
      dup2(null, 2) < 0 || dup2(link, kRecorderLinkFd) < 0) {
    state->exec_error = errno;
    _exit(127);
  }
#ifdef SYS_close_range
  syscall(SYS_close_range, kRecorderLinkFd + 1, ~0u, 0);
#endif
  execve(state->path, argv, envp);
  state->exec_error = errno;
  _exit(127);
}

/* vfork() on purpose: slurmstepd's memory is not copied, and posix_spawn() cannot make a
 * grandchild. The children call nothing but system calls.
 * NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork) */
__attribute__((noinline)) static pid_t vfork_recorder(struct spawn_state* state) {
  const pid_t pid = vfork();
  if (pid == 0) become_recorder(state);
  return pid;
}

__attribute__((noinline)) static pid_t vfork_middle(struct spawn_state* state) {
  const pid_t pid = vfork();
  if (pid == 0) {
    setsid();
    state->recorder = vfork_recorder(state);
    if (state->recorder < 0) state->exec_error = errno;
    _exit(0);
  }
  return pid;
}
/* NOLINTEND(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork) */

static int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by nature */
#else
  (void)pid;
  return -1;
#endif
}

int sphase_spawn(const char* path, struct sphase_recorder* out) {
  int ends[2];
  sigset_t all;
  sigset_t before;
  out->link = -1;
  out->pidfd = -1;
  if (access(path, X_OK) != 0) return errno;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;

  struct spawn_state state = {.path = path, .link = ends[1], .recorder = -1, .exec_error = 0};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t middle = vfork_middle(&state);
  const int vfork_error = errno;
  if (middle > 0) {
    while (waitpid(middle, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);

  if (middle < 0 || state.exec_error != 0) {
    close(ends[0]);
    return middle < 0 ? vfork_error : state.exec_error;
  }
  out->link = ends[0];
  out->pidfd = open_pidfd(state.recorder);
  return 0;
}

void sphase_recorder_close(struct sphase_recorder* recorder, int kill_it) {
  if (recorder->link >= 0) close(recorder->link);
  if (recorder->pidfd >= 0) {
#ifdef SYS_pidfd_send_signal
    if (kill_it) syscall(SYS_pidfd_send_signal, recorder->pidfd, SIGKILL, NULL, 0);
#endif
    close(recorder->pidfd);
  }
  recorder->link = -1;
  recorder->pidfd = -1;
}
