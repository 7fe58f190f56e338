#include "spank/recorder/own_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "spank/recorder/file.h"

namespace sphase {
namespace {

/// The edge thread ran RLIMIT_RTTIME without sleeping: back to normal, for good.
void fall_back(int) {
  const sched_param none{};
  sched_setscheduler(0, SCHED_OTHER, &none);
}

bool move_to_root(const CgroupMount& mount) {
  const Fd procs(::open((mount.mount_point + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!procs) return false;
  return ::write(procs.get(), "0", 1) == 1;  // 0 = the writer itself
}

using Paths = std::map<std::string, std::string>;

/// True if our group there is the job's: slurmstepd's too, but not the task's.
bool sits_in_job(const std::string& controller, const Paths& own, const Paths& stepd,
                 const Paths& task) {
  if (!own.contains(controller) || !stepd.contains(controller) || !task.contains(controller)) {
    return false;
  }
  const std::string& ours = own.at(controller);
  if (ours == "/" || ours == task.at(controller)) return false;
  return ours == stepd.at(controller) || is_below(stepd.at(controller), ours) ||
         is_below(task.at(controller), ours);
}

}  // namespace

void reset_process() {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXCPU, fall_back);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  umask(0077);
}

std::string leave_job_groups(const CgroupTree& tree, int stepd_pid, int task_pid) {
  std::string why;
  const Paths own = tree.paths(getpid());
  const Paths stepd = tree.paths(stepd_pid);
  const Paths task = tree.paths(task_pid);
  std::set<std::string> done;  // mount points: one hierarchy may carry several controllers
  for (const CgroupMount& mount : tree.mounts()) {
    if (!mount.unified && mount.controllers.empty()) continue;
    const std::string controller = mount.unified ? "" : mount.controllers.front();
    if (!done.insert(mount.mount_point).second) continue;
    if (!sits_in_job(controller, own, stepd, task)) continue;
    if (!move_to_root(mount)) {
      why = "the recorder cannot leave the job's cgroup in " + mount.mount_point + ": " +
            std::strerror(errno);
    }
  }
  return why;
}

std::string become_realtime() {
  constexpr rlim_t kBurstUs = 200'000;
  const rlimit bound{kBurstUs, 10 * kBurstUs};
  if (setrlimit(RLIMIT_RTTIME, &bound) != 0) return std::strerror(errno);
  sched_param one{};
  one.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &one) != 0) return std::strerror(errno);
  return "";
}

void end_within(unsigned seconds) { alarm(seconds); }

}  // namespace sphase
