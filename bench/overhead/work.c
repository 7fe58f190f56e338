/* Part of ./dev bench overhead: a fixed amount of work, and the ms that it took.
 *
 *   bench_overhead_work compute|memory ROUNDS 0|1
 *
 * With 1 every other round begins a phase and the next one ends it. One round is about 1 ms.
 * `memory` walks through 64 MiB, more than any cache holds; `compute` stays in registers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "marker/sphase.h"

enum { kWords = 8 << 20, kStep = 8 };

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double compute(void) {
  double x = 1.0;
  for (int i = 0; i < 250000; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

static double walk(const double* memory, size_t* at) {
  double sum = 0;
  for (int i = 0; i < 60000; ++i) {
    sum += memory[*at];
    *at = (*at + kStep) % kWords;
  }
  return sum;
}

int main(int argc, char** argv) {
  const int rounds = argc == 4 ? atoi(argv[2]) : 0;
  const int marks = argc == 4 && strcmp(argv[3], "1") == 0;
  const int is_memory = argc == 4 && strcmp(argv[1], "memory") == 0;
  if (rounds < 1) {
    fprintf(stderr, "usage: bench_overhead_work compute|memory ROUNDS 0|1\n");
    return 2;
  }
  double* memory = calloc(kWords, sizeof(double));
  volatile double sink = 0;
  size_t at = 0;
  if (memory == NULL) return 1;
  memset(memory, 1, kWords * sizeof(double));
  const double begun = now_ms();
  for (int i = 0; i < rounds; ++i) {
    if (marks && i % 2 == 0) sphase_begin("round");
    sink += is_memory ? walk(memory, &at) : compute();
    if (marks && i % 2 == 1) sphase_end("round");
  }
  printf("took_ms %.3f\n", now_ms() - begun);
  free(memory);
  return 0;
}
