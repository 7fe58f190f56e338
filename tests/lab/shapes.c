/* Programs whose phases have unusual shapes, one per word of the command line. Each prints the
 * truth about its phases (tests/lab/truth.h).
 *
 *   nested             outer > middle > inner, 120 ms of work in each
 *   unclosed           a phase that nobody ends
 *   twice              a phase that is ended twice
 *   threads            ten threads in the same phase
 *   forked             a child process that marks a phase of its own
 *   burn               a child process that works without marking, while the parent only waits
 *   outside            work inside and outside of phases ("outside" in the truth is no phase)
 *   memory             page cache, then three allocations: brief, large, small
 *   hot PAIRS          markers as fast as they go
 *   gate READY GO CODE markers; then makes the file READY and waits for the file GO; markers; ends
 *                      with CODE, or by signal -CODE
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lab/truth.h"

enum { kTeam = 10, kGateLimitMs = 30000 };

static void work(long ms) { busy(&ms); }

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static int nested(void) {
  const struct truth outer = enter("outer", 1);
  work(120);
  const struct truth middle = enter("middle", 1);
  work(120);
  const struct truth inner = enter("inner", 1);
  work(120);
  leave(&inner, 0, 0);
  leave(&middle, 0, 0);
  leave(&outer, 0, 0);
  return 0;
}

static int unclosed(void) {
  sphase_begin("open");
  work(120);
  return 0;
}

static int twice(void) {
  const struct truth once = enter("once", 1);
  work(120);
  leave(&once, 0, 0);
  sphase_end("once");
  return 0;
}

static void* in_team(void* unused) {
  (void)unused;
  sphase_begin("team");
  work(150);
  sphase_end("team");
  return NULL;
}

static int threads(void) {
  pthread_t team[kTeam];
  const int64_t wall_ns = clock_ns(CLOCK_MONOTONIC);
  const int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < kTeam; ++i) pthread_create(&team[i], NULL, in_team, NULL);
  for (int i = 0; i < kTeam; ++i) pthread_join(team[i], NULL);
  const struct truth all = {"team", 1, clock_ns(CLOCK_MONOTONIC) - wall_ns,
                            clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns};
  tell(&all, 0, 0);
  return 0;
}

/* CPU time of the children that were waited for. */
static int64_t children_cpu_ns(void) {
  struct rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
         (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

static void wait_for(pid_t child) {
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
  }
}

static int forked(void) {
  sphase_begin("parent");
  work(60);
  const pid_t child = fork();
  if (child == 0) {
    const struct truth own = enter("child", 1);
    work(150);
    leave(&own, 0, 0);
    _exit(0);
  }
  wait_for(child);
  sphase_end("parent");
  return 0;
}

static int burn(void) {
  struct truth whole = enter("burn", 1);
  const pid_t child = fork();
  if (child == 0) {
    work(300);
    _exit(0);
  }
  wait_for(child);
  sphase_end("burn");
  whole.wall_ns = clock_ns(CLOCK_MONOTONIC) - whole.wall_ns;
  whole.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - whole.cpu_ns + children_cpu_ns();
  tell(&whole, 0, 0);
  return 0;
}

static int outside(void) {
  const int64_t wall_ns = clock_ns(CLOCK_MONOTONIC);
  work(150);
  const struct truth first = enter("first", 1);
  work(200);
  leave(&first, 0, 0);
  work(150);
  const struct truth second = enter("second", 1);
  work(200);
  leave(&second, 0, 0);
  const struct truth whole = {"whole", 1, clock_ns(CLOCK_MONOTONIC) - wall_ns,
                              clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  tell(&whole, 0, 0);
  return 0;
}

/* Holds MiB of touched memory for a while. */
static void hold(const char* phase, long mib, long ms) {
  const size_t bytes = (size_t)mib << 20;
  const struct truth truth = enter(phase, 1);
  char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) exit(1);
  memset(memory, 1, bytes);
  sleep_ms(ms);
  munmap(memory, bytes);
  leave(&truth, (int64_t)bytes, 0);
}

static int fill_cache(int file, long mib) {
  static char block[1 << 20];
  for (long i = 0; i < mib; ++i) {
    if (write(file, block, sizeof(block)) != (ssize_t)sizeof(block)) return -1;
  }
  return fsync(file);
}

static int memory(void) {
  enum { kCacheMiB = 24 };
  char path[64];
  snprintf(path, sizeof(path), "shapes-cache-%d", (int)getpid());
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const struct truth written = enter("write", 1);
  if (file < 0 || fill_cache(file, kCacheMiB) != 0) return 1;
  leave(&written, 0, (int64_t)kCacheMiB << 20);
  hold("brief", 64, 0);
  hold("large", 160, 250);
  hold("small", 32, 250);
  close(file);
  unlink(path);
  return 0;
}

static int hot(long pairs) {
  const struct truth whole = {"hot", 1, clock_ns(CLOCK_MONOTONIC),
                              clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  for (long i = 0; i < pairs; ++i) {
    sphase_begin("hot");
    sphase_end("hot");
  }
  const struct truth used = {"hot", 1, clock_ns(CLOCK_MONOTONIC) - whole.wall_ns,
                             clock_ns(CLOCK_PROCESS_CPUTIME_ID) - whole.cpu_ns};
  tell(&used, 0, 0);
  return 0;
}

static void touch(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT, 0644);
  if (file >= 0) close(file);
}

static void mark_steps(void) {
  for (int i = 0; i < 3; ++i) {
    sphase_begin("step");
    work(20);
    sphase_end("step");
  }
}

static int gate(const char* ready, const char* go, int code) {
  sphase_begin("before");
  mark_steps();
  sphase_end("before");
  sphase_begin("during");
  touch(ready);
  for (long waited = 0; access(go, F_OK) != 0 && waited < kGateLimitMs; waited += 10) sleep_ms(10);
  sphase_end("during");
  sphase_begin("after");
  mark_steps();
  sphase_end("after");
  puts("said on stdout");
  fputs("said on stderr\n", stderr);
  fflush(NULL);
  if (code < 0) {
    sleep_ms(300); /* srun may drop what a task said just before a signal ended it */
    raise(-code);
  }
  return code;
}

int main(int argc, char** argv) {
  const char* const shape = argc > 1 ? argv[1] : "";
  if (strcmp(shape, "nested") == 0) return nested();
  if (strcmp(shape, "unclosed") == 0) return unclosed();
  if (strcmp(shape, "twice") == 0) return twice();
  if (strcmp(shape, "threads") == 0) return threads();
  if (strcmp(shape, "forked") == 0) return forked();
  if (strcmp(shape, "burn") == 0) return burn();
  if (strcmp(shape, "outside") == 0) return outside();
  if (strcmp(shape, "memory") == 0) return memory();
  if (strcmp(shape, "hot") == 0 && argc == 3) return hot(atol(argv[2]));
  if (strcmp(shape, "gate") == 0 && argc == 5) return gate(argv[2], argv[3], atoi(argv[4]));
  fputs(
      "usage: shapes nested|unclosed|twice|threads|forked|burn|outside|memory|hot PAIRS|"
      "gate READY GO CODE\n",
      stderr);
  return 2;
}
