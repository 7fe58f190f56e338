/* A job with phases of different shape that also says the truth about itself.
 *
 *   setup    one busy core, little memory
 *   solve    THREADS busy cores and MEMORY MiB, in three nested steps "iterate"
 *   write    WRITE MiB to a file, synced
 *
 * For each phase one line: "truth TASK PHASE NUMBER wall_ns cpu_ns memory_bytes written_bytes",
 * measured by itself just inside the markers: CLOCK_PROCESS_CPUTIME_ID, the bytes that it touched
 * and wrote. Tests compare the recorder with these lines.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "marker/sphase.h"

enum { kIterations = 3, kMostThreads = 64 };

struct options {
  long setup_ms;
  long solve_ms; /* all iterations together */
  long threads;
  long memory_mib;
  long write_mib;
  const char* folder;
};

struct truth {
  const char* phase;
  int number;
  int64_t wall_ns;
  int64_t cpu_ns;
};

static int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct truth enter(const char* phase, int number) {
  sphase_begin(phase);
  const struct truth truth = {phase, number, clock_ns(CLOCK_MONOTONIC),
                              clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
  return truth;
}

static void leave(const struct truth* begun, int64_t memory_bytes, int64_t written_bytes) {
  const int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun->cpu_ns;
  const int64_t wall_ns = clock_ns(CLOCK_MONOTONIC) - begun->wall_ns;
  sphase_end(begun->phase);
  const char* task = getenv("SLURM_PROCID");
  printf("truth %s %s %d %lld %lld %lld %lld\n", task != NULL ? task : "0", begun->phase,
         begun->number, (long long)wall_ns, (long long)cpu_ns, (long long)memory_bytes,
         (long long)written_bytes);
}

static void* busy(void* argument) {
  const int64_t until = clock_ns(CLOCK_MONOTONIC) + *(const long*)argument * 1000000;
  volatile double x = 1.0;
  while (clock_ns(CLOCK_MONOTONIC) < until) {
    for (int i = 0; i < 10000; ++i) x = x * 1.0000001 + 1e-9;
  }
  return NULL;
}

static void busy_threads(long threads, long ms) {
  pthread_t others[kMostThreads];
  for (long i = 1; i < threads; ++i) pthread_create(&others[i], NULL, busy, &ms);
  busy(&ms);
  for (long i = 1; i < threads; ++i) pthread_join(others[i], NULL);
}

static void solve(const struct options* options) {
  const size_t bytes = (size_t)options->memory_mib << 20;
  const struct truth whole = enter("solve", 1);
  char* memory = NULL;
  if (bytes > 0) {
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    memset(memory, 1, bytes);
  }
  for (int i = 1; i <= kIterations; ++i) {
    const struct truth step = enter("iterate", i);
    busy_threads(options->threads, options->solve_ms / kIterations);
    leave(&step, (int64_t)bytes, 0);
    sphase_value("residual", 1.0 / i);
  }
  if (memory != NULL) munmap(memory, bytes);
  leave(&whole, (int64_t)bytes, 0);
}

static void write_file(const struct options* options) {
  static char block[1 << 20];
  char path[512];
  const char* task = getenv("SLURM_PROCID");
  snprintf(path, sizeof(path), "%s/workload-%s-%d", options->folder, task != NULL ? task : "0",
           (int)getpid());
  const struct truth whole = enter("write", 1);
  FILE* file = fopen(path, "w");
  if (file == NULL) {
    fprintf(stderr, "workload: cannot write %s: %s\n", path, strerror(errno));
    exit(1);
  }
  setvbuf(file, NULL, _IONBF, 0);
  for (long i = 0; i < options->write_mib; ++i) fwrite(block, sizeof(block), 1, file);
  fsync(fileno(file));
  fclose(file);
  leave(&whole, 0, (int64_t)options->write_mib << 20);
  unlink(path);
}

int main(int argc, char** argv) {
  struct options options = {300, 600, 2, 64, 8, "/tmp"};
  int option;
  while ((option = getopt(argc, argv, "s:c:t:m:w:d:")) != -1) {
    switch (option) {
      case 's': options.setup_ms = atol(optarg); break;
      case 'c': options.solve_ms = atol(optarg); break;
      case 't': options.threads = atol(optarg); break;
      case 'm': options.memory_mib = atol(optarg); break;
      case 'w': options.write_mib = atol(optarg); break;
      case 'd': options.folder = optarg; break;
      default:
        fprintf(stderr,
                "usage: workload [-s setup_ms] [-c solve_ms] [-t threads] [-m memory_mib] "
                "[-w write_mib] [-d folder]\n");
        return 2;
    }
  }
  if (options.threads < 1 || options.threads > kMostThreads) return 2;
  sphase_attr("threads", "set by -t");
  if (options.setup_ms > 0) {
    const struct truth setup = enter("setup", 1);
    busy(&options.setup_ms);
    leave(&setup, 0, 0);
  }
  if (options.solve_ms > 0) solve(&options);
  if (options.write_mib > 0) write_file(&options);
  return 0;
}
