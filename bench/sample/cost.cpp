// For bench/sample.py: what one sample of one step costs, in µs.
//
// The recorder's own Sampler reads a task with kept descriptors: as a periodic sample (sample_us)
// and as one at a marker, which may reuse the list of processes (edge_sample_us). The peer opens,
// reads and closes the same files each time, as exporters do (sample_reopen_us). All take turns, so
// that a noisy machine slows each of them.
//
//   bench_sample_cost ROUNDS        prints lines "KEY FIGURE"
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "bench/sample/groups.h"
#include "common/clock.h"
#include "spank/recorder/sources/sampler.h"

namespace sphase {
namespace {

constexpr int kInBatch = 50;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void read_anew(const std::string& path) {
  char buffer[8192];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!read(fd, buffer, sizeof(buffer));
  close(fd);
}

void read_all_anew(const BenchTask& task) {
  for (const BenchGroup& group : task.groups()) {
    for (const std::string& name : group.files) read_anew(group.directory + "/" + name);
  }
  read_anew("/proc/" + std::to_string(task.pid()) + "/io");
  read_anew("/proc/" + std::to_string(getpid()) + "/io");
}

template <typename Function>
void batch_us(Function function, std::vector<double>& out) {
  const std::int64_t begun = monotonic_ns();
  for (int i = 0; i < kInBatch; ++i) function();
  out.push_back(static_cast<double>(monotonic_ns() - begun) / 1000.0 / kInBatch);
}

int run(int rounds) {
  const CgroupTree tree = CgroupTree::read();
  const BenchTask task(tree);
  if (!task.complete()) {
    std::fputs("needs root and cgroup v1 cpuacct and memory hierarchies\n", stderr);
    return 1;
  }
  Sampler sampler(tree, getpid());
  sampler.attach(0, task.pid(), getpid());
  std::vector<double> kept, edge, reopened;
  for (int round = 0; round < rounds; ++round) {
    batch_us([&] { (void)sampler.sample("tick"); }, kept);
    batch_us([&] { (void)sampler.sample("edge"); }, edge);
    batch_us([&] { read_all_anew(task); }, reopened);
  }
  std::printf("sample_us %.3f\nedge_sample_us %.3f\nsample_reopen_us %.3f\n", median(kept),
              median(edge), median(reopened));
  return 0;
}

}  // namespace
}  // namespace sphase

int main(int argc, char** argv) {
  try {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
    return rounds > 0 ? sphase::run(rounds) : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_sample_cost: %s\n", error.what());
    return 1;
  }
}
