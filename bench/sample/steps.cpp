// For bench/sample.py: CPU time of real recorders, each with a step of one sleeping task, that
// write one node.db together. The rest of a recorder's work (waking up, its commits) is in it, and
// the start and end of the steps are not.
//
//   bench_sample_steps RECORDER STEPS PERIOD_MS SECONDS      prints CPU percent of all together
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "bench/bench_folder.h"
#include "bench/sample/groups.h"
#include "common/clock.h"
#include "spank/recorder_link.h"

namespace sphase {
namespace {

constexpr int kLinkFd = 3;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void set(char* to, std::size_t size, const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

/// A recorder as the plugin starts it, but our own child, so that its CPU time can be read.
class Recorder {
 public:
  Recorder(const char* program, const CgroupTree& tree, const std::string& folder, int number,
           int period_ms)
      : task_(tree) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      if (dup2(ends[1], kLinkFd) == kLinkFd) execl(program, "sphase-recorder", nullptr);
      _exit(127);
    }
    close(ends[1]);
    link_ = ends[0];
    tell_start(folder, number, period_ms);
    tell(SPHASE_LINK_ATTACH);
    if (clock_getcpuclockid(pid_, &clock_) != 0) fail("clock_getcpuclockid");
  }
  Recorder(Recorder&& other) noexcept
      : task_(std::move(other.task_)),
        pid_(std::exchange(other.pid_, -1)),
        link_(std::exchange(other.link_, -1)),
        clock_(other.clock_) {}
  Recorder& operator=(Recorder&&) = delete;
  ~Recorder() {
    if (pid_ <= 0) return;
    close(link_);  // the step is over
    waitpid(pid_, nullptr, 0);
  }

  std::int64_t cpu_time_ns() const { return clock_ns(clock_); }

 private:
  void tell_start(const std::string& folder, int number, int period_ms) {
    sphase_link_start start{};
    start.type = SPHASE_LINK_START;
    start.version = SPHASE_LINK_VERSION;
    start.start_ns = static_cast<std::uint64_t>(epoch_ns());
    start.job_id = static_cast<std::uint32_t>(number);
    start.stepd_pid = static_cast<std::uint32_t>(getpid());
    start.period_ns = static_cast<std::uint64_t>(period_ms) * 1'000'000;
    start.max_bytes = 1u << 30;
    set(start.step, sizeof(start.step), "0");
    set(start.cluster, sizeof(start.cluster), "bench");
    set(start.node, sizeof(start.node), "n1");
    set(start.socket_path, sizeof(start.socket_path), folder + "/s" + std::to_string(number));
    set(start.node_db, sizeof(start.node_db), folder + "/db/node.db");
    set(start.run_dir, sizeof(start.run_dir), folder);
    if (send(link_, &start, sizeof(start), 0) != sizeof(start)) fail("telling the recorder");
  }
  void tell(std::uint32_t type) {
    sphase_link_task message{};
    message.type = type;
    message.pid = static_cast<std::uint32_t>(task_.pid());
    sphase_link_ack ack{};
    if (send(link_, &message, sizeof(message), 0) != sizeof(message)) fail("telling the recorder");
    if (recv(link_, &ack, sizeof(ack), 0) != sizeof(ack)) fail("the recorder's answer");
  }

  BenchTask task_;
  pid_t pid_ = -1;
  int link_ = -1;
  clockid_t clock_{};
};

std::int64_t all_cpu_ns(const std::vector<Recorder>& recorders) {
  std::int64_t sum = 0;
  for (const Recorder& recorder : recorders) sum += recorder.cpu_time_ns();
  return sum;
}

void sleep_s(int seconds) {
  timespec left{seconds, 0};
  while (nanosleep(&left, &left) != 0) {
  }
}

double cpu_percent(const char* program, int steps, int period_ms, int seconds) {
  const BenchFolder folder;
  const CgroupTree tree = CgroupTree::read();
  std::vector<Recorder> recorders;
  for (int i = 0; i < steps; ++i) {
    recorders.emplace_back(program, tree, folder.path, i + 1, period_ms);
  }
  sleep_s(2);  // what a start costs is another figure
  const std::int64_t cpu_ns = all_cpu_ns(recorders);
  const std::int64_t begun_ns = monotonic_ns();
  sleep_s(seconds);
  return 100.0 * static_cast<double>(all_cpu_ns(recorders) - cpu_ns) /
         static_cast<double>(monotonic_ns() - begun_ns);
}

}  // namespace
}  // namespace sphase

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: bench_sample_steps RECORDER STEPS PERIOD_MS SECONDS\n", stderr);
    return 2;
  }
  try {
    std::printf("%.4f\n", sphase::cpu_percent(argv[1], std::atoi(argv[2]), std::atoi(argv[3]),
                                              std::atoi(argv[4])));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_sample_steps: %s\n", error.what());
    return 1;
  }
}
