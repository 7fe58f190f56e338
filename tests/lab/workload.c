/* A job with phases of different shape that also says the truth about itself.
 *
 *   setup    one busy core, little memory
 *   solve    THREADS busy cores and MEMORY MiB, in three nested steps "iterate"
 *   write    WRITE MiB to a file, synced
 *
 * It prints the truth about each phase (tests/lab/truth.h).
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lab/truth.h"

enum { kIterations = 3, kMostThreads = 64 };

struct options {
  long setup_ms;
  long solve_ms; /* all iterations together */
  long threads;
  long memory_mib;
  long write_mib;
  const char* folder;
};

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
  snprintf(path, sizeof(path), "%s/workload-%s-%d", options->folder, task_id(), (int)getpid());
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
      case 's':
        options.setup_ms = atol(optarg);
        break;
      case 'c':
        options.solve_ms = atol(optarg);
        break;
      case 't':
        options.threads = atol(optarg);
        break;
      case 'm':
        options.memory_mib = atol(optarg);
        break;
      case 'w':
        options.write_mib = atol(optarg);
        break;
      case 'd':
        options.folder = optarg;
        break;
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
