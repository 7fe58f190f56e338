// ./dev bench sample: what one sample of one step costs.
//
// A child process sits in cgroups of its own, made for this bench the way Slurm makes a task's; the
// recorder's own Sampler reads it with kept descriptors: as a periodic sample (sample_us) and as
// one at a marker, which may reuse the list of processes (edge_sample_us). The peer opens, reads
// and closes the same files each time, as exporters do (sample_reopen_us). Both take turns, so that
// a noisy machine slows both.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "bench/bench_file.h"
#include "common/clock.h"
#include "spank/recorder/sources/sampler.h"

namespace sphase {
namespace {

struct Group {
  std::string directory;
  std::vector<std::string> files;
};

bool write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return static_cast<bool>(file.flush());
}

/// Groups for `pid` in every hierarchy that the recorder would read.
std::vector<Group> make_groups(const CgroupTree& tree, int pid) {
  std::vector<Group> groups;
  const std::vector<std::pair<std::string, std::vector<std::string>>> wanted = {
      {"cpuacct", {"cpuacct.usage", "cgroup.procs"}},
      {"memory",
       {"memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.stat",
        "memory.kmem.usage_in_bytes"}}};
  for (const auto& [controller, files] : wanted) {
    const CgroupMount* const mount = tree.mount_of(controller);
    if (mount == nullptr) continue;
    const std::string directory = mount->mount_point + "/sphase_bench_" + std::to_string(getpid());
    if (mkdir(directory.c_str(), 0755) != 0) continue;
    if (write_text(directory + "/cgroup.procs", std::to_string(pid))) {
      groups.push_back({directory, files});
    }
  }
  return groups;
}

int start_child() {
  const int pid = fork();
  if (pid == 0) {
    while (true) pause();
  }
  return pid;
}

void read_anew(const std::string& path) {
  char buffer[8192];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!read(fd, buffer, sizeof(buffer));
  close(fd);
}

template <typename Function>
void batch_us(int times, Function function, std::vector<double>& out) {
  const std::int64_t begun = monotonic_ns();
  for (int i = 0; i < times; ++i) function();
  out.push_back(static_cast<double>(monotonic_ns() - begun) / 1000.0 / times);
}

int run(bool quick) {
  const CgroupTree tree = CgroupTree::read();
  const int child = start_child();
  const std::vector<Group> groups = make_groups(tree, child);
  BenchFile file("sample");
  if (groups.size() < 2) {
    file.missing("sample_us", "needs root and cgroup v1 cpuacct and memory hierarchies");
  } else {
    Sampler sampler(tree, getpid());
    sampler.attach(0, child, getpid());
    std::vector<double> kept;
    std::vector<double> edge;
    std::vector<double> reopened;
    const int rounds = quick ? 50 : 300;
    for (int round = 0; round < rounds; ++round) {
      batch_us(
          50, [&] { (void)sampler.sample("tick"); }, kept);
      batch_us(
          50, [&] { (void)sampler.sample("edge"); }, edge);
      batch_us(
          50,
          [&] {
            for (const Group& group : groups) {
              for (const std::string& name : group.files) read_anew(group.directory + "/" + name);
            }
            read_anew("/proc/" + std::to_string(child) + "/io");
            read_anew("/proc/" + std::to_string(getpid()) + "/io");
          },
          reopened);
    }
    file.figure("sample_us", median(kept));
    file.figure("edge_sample_us", median(edge));
    file.figure("sample_reopen_us", median(reopened));
    file.figure("sample_ratio", median(kept) / median(reopened));
  }
  file.missing("cpu_percent_1hz_64steps", "measured with the benches of the counters issue");
  file.missing("hdf5_cpu_percent_1hz", "measured with the benches of the counters issue");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const Group& group : groups) rmdir(group.directory.c_str());
  return file.write() ? 0 : 1;
}

}  // namespace
}  // namespace sphase

int main(int argc, char** argv) {
  try {
    return sphase::run(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench sample: %s\n", error.what());
    return 1;
  }
}
