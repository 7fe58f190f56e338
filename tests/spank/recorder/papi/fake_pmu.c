/* Test only, preloaded: a machine without counters gets some. perf_event_open of a hardware event
 * opens a software event instead: "instructions" count CPU time in ns, all else page faults.
 * With FAKE_PMU_ERRNO in the environment every such call fails with that number. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long (*syscall_function)(long, long, long, long, long, long, long);

/* On Intel: INST_RETIRED, as an architectural event and as the kernel's generic one. */
static int counts_instructions(const struct perf_event_attr* attr) {
  if (attr->type == PERF_TYPE_HARDWARE) return attr->config == PERF_COUNT_HW_INSTRUCTIONS;
  return attr->type == PERF_TYPE_RAW && (attr->config & 0xffff) == 0xc0;
}

static void make_software(struct perf_event_attr* attr) {
  if (attr->type == PERF_TYPE_SOFTWARE) return;
  attr->config = counts_instructions(attr) ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_PAGE_FAULTS;
  attr->type = PERF_TYPE_SOFTWARE;
  attr->config1 = 0;
  attr->config2 = 0;
  attr->precise_ip = 0;
}

/* libpapi calls perf_event_open through syscall(2) of libc. */
long syscall(long number, ...) {
  static syscall_function next;
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "syscall");
  long argument[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) argument[i] = va_arg(list, long);
  va_end(list);
  struct perf_event_attr attr;
  if (number == SYS_perf_event_open) {
    const char* const failure = getenv("FAKE_PMU_ERRNO");
    if (failure != NULL) {
      errno = atoi(failure);
      return -1;
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): syscall(2) has numbers for pointers */
    attr = *(const struct perf_event_attr*)argument[0];
    make_software(&attr);
    argument[0] = (long)&attr;
  }
  return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
