/* Part of ./dev bench edges: phases p1, p10, p100 and p1000 that use so many ms of CPU time,
 * between rests of random length, and what they really used ("truth …", tests/lab/truth.h).
 *
 *   bench_edges_phases COUNT      COUNT phases of each length (a tenth of it for p1000)
 */
#include <stdlib.h>

#include "tests/lab/truth.h"

static void rest(void) {
  const struct timespec time = {0, (5 + rand() % 20) * 1000000L};
  nanosleep(&time, NULL);
}

static void phases(const char* name, long ms, int count) {
  for (int i = 1; i <= count; ++i) {
    rest();
    const struct truth truth = enter(name, i);
    busy(&ms);
    leave(&truth, 0, 0);
  }
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  if (count < 10) {
    fprintf(stderr, "usage: bench_edges_phases COUNT (at least 10)\n");
    return 2;
  }
  srand(1);
  phases("p1", 1, count);
  phases("p10", 10, count);
  phases("p100", 100, count);
  phases("p1000", 1000, count / 10);
  return 0;
}
