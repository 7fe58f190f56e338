/* slurmstepd as the plugin sees it: loads the plugin, plays Slurm's order of hooks, and prints what
 * can be seen from outside after each of them. Its arguments are words:
 *
 *   plugin=FILE            the plugin (required)
 *   arg:KEY=VALUE          an argument of the plugstack line
 *   env:KEY=VALUE          a variable of the job
 *   context=remote|slurmd|job_script|local|allocator
 *   step=N|batch|extern|interactive
 *   option=VALUE           --phase-telemetry=VALUE, given twice (as Slurm may) with "off" first
 *   tasks=N  rounds=N      a whole step is played `rounds` times, dlopen and dlclose each time
 *   hooks=N                init and exit are called N times, nothing else
 *   nofile=1               no descriptor is left when the hooks start
 *   files=N                limit of descriptors
 *   restarts=N             SLURM_RESTART_COUNT, which a batch step has only from task_init on
 *   sigterm=blocked        as slurmstepd does it
 *   show=NAME              the job's variable is printed when the hooks before its tasks were
 * called stop=attached          stops after the last attach and waits to be killed
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/spank/fake_spank.h"

enum { kMostTasks = 16, kMostArguments = 16 };

static struct {
  const char* plugin;
  const char* option;
  char* arguments[kMostArguments];
  int argument_count;
  int tasks;
  int rounds;
  int hooks;
  int nofile;
  int stop;
  const char* restarts;
  const char* shown[8];
  int shown_count;
} setup = {.tasks = 1, .rounds = 1};

static void* library;
static int quiet;
static int failed_hooks;
static int task_pids[kMostTasks];
static int first_used_up = -1; /* the descriptors from here on are only there to be used up */
static int release_pipe[2];

__attribute__((noreturn)) static void die(const char* what) {
  fprintf(stderr, "fake_host: %s: %s\n", what, strerror(errno));
  exit(1);
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Without opening a file: there may be no descriptor left. */
static int count_fds(void) {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) ++count;
  }
  return count;
}

static int count_threads(void) {
  char line[256];
  int threads = -1;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
    if (sscanf(line, "Threads: %d", &threads) == 1) break;
  }
  if (status != NULL) fclose(status);
  return threads;
}

/* Children that are not tasks: a recorder of ours, or what is left of one. */
static int count_strangers(void) {
  char path[64];
  int pid = 0;
  int strangers = 0;
  snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
  FILE* children = fopen(path, "r");
  while (children != NULL && fscanf(children, "%d", &pid) == 1) {
    int known = 0;
    for (int i = 0; i < kMostTasks; ++i) known |= task_pids[i] == pid;
    strangers += !known;
  }
  if (children != NULL) fclose(children);
  return strangers;
}

static int can_unshare(void) {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : 1);
  int status = 1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

static void hook(const char* name) {
  char symbol[64];
  snprintf(symbol, sizeof(symbol), "slurm_spank_%s", name);
  spank_f* call = NULL;
  *(void**)&call = dlsym(library, symbol);
  if (call == NULL) return; /* Slurm passes over hooks that a plugin does not have */
  const long before = now_ms();
  const int result = call(NULL, setup.argument_count, setup.arguments);
  if (result != 0) ++failed_hooks;
  if (quiet) return;
  printf("hook %s rc=%d ms=%ld threads=%d strangers=%d\n", name, result, now_ms() - before,
         count_threads(), count_strangers());
}

static void give_option(const char* value) {
  if (setup.option == NULL || fake_spank.option_callback == NULL) return;
  const int remote = fake_spank.context == S_CTX_REMOTE;
  const int result = fake_spank.option_callback(0, value, remote);
  if (!quiet) printf("option rc=%d\n", result);
}

/* A task as slurmstepd has it: forked, waiting to be let go. */
static void fork_task(int task) {
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    char byte;
    close(release_pipe[1]);
    while (read(release_pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    quiet = 1;
    failed_hooks = 0;
    if (setup.restarts != NULL) fake_spank_env("SLURM_RESTART_COUNT", setup.restarts);
    hook("task_init");
    volatile unsigned sink = 0;
    for (unsigned i = 0; i < 1000000; ++i) sink += i;
    _exit(failed_hooks == 0 ? task : 99);
  }
  task_pids[task] = pid;
}

static void in_task(int task, const char* name) {
  fake_spank.task = task;
  fake_spank.task_pid = task_pids[task];
  hook(name);
  fake_spank.task = -1;
}

static void run_tasks(void) {
  if (pipe2(release_pipe, O_CLOEXEC) != 0) die("pipe");
  for (int task = 0; task < setup.tasks; ++task) fork_task(task);
  for (int task = 0; task < setup.tasks; ++task) in_task(task, "task_post_fork");
  if (setup.stop) {
    printf("attached\n");
    fflush(stdout);
    while (1) pause();
  }
  close(release_pipe[1]);
  close(release_pipe[0]);
  for (int task = 0; task < setup.tasks; ++task) {
    while (waitpid(task_pids[task], &fake_spank.exit_status, 0) < 0 && errno == EINTR) {
    }
    in_task(task, "task_exit");
    task_pids[task] = 0;
  }
}

static void load(void) {
  library = dlopen(setup.plugin, RTLD_LAZY);
  if (library == NULL) {
    fprintf(stderr, "fake_host: %s\n", dlerror());
    exit(1);
  }
}

static void play_step(void) {
  load();
  hook("init");
  give_option("off");
  give_option(setup.option);
  hook("init_post_opt");
  if (!quiet) {
    const char* socket = fake_spank_env_of("SPHASE_SOCKET");
    printf("socket %s\n", socket != NULL ? socket : "none");
    for (int i = 0; i < setup.shown_count; ++i) {
      const char* value = fake_spank_env_of(setup.shown[i]);
      printf("env %s=%s\n", setup.shown[i], value != NULL ? value : "(unset)");
    }
  }
  if (setup.nofile == 0) run_tasks();
  hook("exit");
  dlclose(library);
}

static void call_hooks(void) {
  load();
  const long before = fake_spank.calls;
  quiet = 1;
  for (int i = 0; i < setup.hooks; ++i) {
    hook("init");
    hook("init_post_opt");
    hook("task_post_fork");
    hook("task_exit");
    hook("exit");
  }
  printf("calls %ld\n", fake_spank.calls - before);
  printf("registered %d\n", fake_spank.registered);
  printf("threads %d strangers %d\n", count_threads(), count_strangers());
}

static int context_of(const char* word) {
  if (strcmp(word, "slurmd") == 0) return S_CTX_SLURMD;
  if (strcmp(word, "job_script") == 0) return S_CTX_JOB_SCRIPT;
  if (strcmp(word, "local") == 0) return S_CTX_LOCAL;
  if (strcmp(word, "allocator") == 0) return S_CTX_ALLOCATOR;
  return S_CTX_REMOTE;
}

static uint32_t step_of(const char* word) {
  if (strcmp(word, "batch") == 0) return SLURM_BATCH_SCRIPT;
  if (strcmp(word, "extern") == 0) return SLURM_EXTERN_CONT;
  if (strcmp(word, "interactive") == 0) return SLURM_INTERACTIVE_STEP;
  return (uint32_t)strtoul(word, NULL, 10);
}

static void take_word(char* word) {
  char* const equals = strchr(word, '=');
  if (equals == NULL) die(word);
  char* const value = equals + 1;
#define IS(key) (strncmp(word, key "=", sizeof(key)) == 0)
  if (strncmp(word, "arg:", 4) == 0) {
    setup.arguments[setup.argument_count++] = word + 4;
  } else if (strncmp(word, "env:", 4) == 0) {
    *equals = '\0';
    fake_spank_env(word + 4, value);
  } else if (IS("plugin")) {
    setup.plugin = value;
  } else if (IS("option")) {
    setup.option = value;
  } else if (IS("context")) {
    fake_spank.context = context_of(value);
  } else if (IS("step")) {
    fake_spank.step_id = step_of(value);
  } else if (IS("tasks")) {
    setup.tasks = atoi(value);
  } else if (IS("rounds")) {
    setup.rounds = atoi(value);
  } else if (IS("hooks")) {
    setup.hooks = atoi(value);
  } else if (IS("nofile")) {
    setup.nofile = atoi(value);
  } else if (IS("files")) {
    const struct rlimit few = {strtoul(value, NULL, 10), 4096};
    setrlimit(RLIMIT_NOFILE, &few);
  } else if (IS("restarts")) {
    setup.restarts = value;
  } else if (IS("show")) {
    if (setup.shown_count < 8) setup.shown[setup.shown_count++] = value;
  } else if (IS("stop")) {
    setup.stop = 1;
  } else if (IS("sigterm")) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
  } else {
    die(word);
  }
#undef IS
}

static void use_up_descriptors(void) {
  const struct rlimit few = {64, 64};
  setrlimit(RLIMIT_NOFILE, &few);
  first_used_up = open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
}

static void give_back_descriptors(void) {
  if (first_used_up >= 0) close_range((unsigned)first_used_up, ~0u, 0);
}

int main(int argc, char* argv[]) {
  fake_spank_reset();
  fake_spank.echo = 1;
  for (int i = 1; i < argc; ++i) take_word(argv[i]);
  if (setup.plugin == NULL || setup.tasks > kMostTasks) die("usage");
  const int unshare_before = can_unshare();
  if (setup.nofile) {
    load();
    use_up_descriptors();
  }
  const int before = count_fds();
  if (setup.hooks > 0) {
    call_hooks();
  } else {
    quiet = setup.rounds > 1;
    for (int round = 0; round < setup.rounds; ++round) play_step();
  }
  printf("fds before=%d after=%d\n", before, count_fds());
  give_back_descriptors();
  printf("unshare before=%d after=%d\n", unshare_before, can_unshare());
  printf("failed %d\nlogged %ld\n", failed_hooks, fake_spank.logged);
  printf("done\n");
  return 0;
}
