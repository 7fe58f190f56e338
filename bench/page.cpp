// ./dev bench page: how long a page of a million samples takes, and how large it is.
//
//   one_node_ms, one_node_mb      1 node with 1 000 000 samples
//   many_nodes_ms, many_nodes_mb  512 nodes with 2000 samples and 50 phases each
//
// From the Timeline in memory to the text of the file; median of some rounds.
#include "collector/page/page.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "bench/bench_file.h"
#include "tests/collector/page/big_timeline.h"

namespace {

using sphase::testing::BigSpec;

constexpr int kRounds = 5;

void measure(const std::string& name, const BigSpec& spec, sphase::BenchFile& file) {
  const std::vector<sphase::Timeline> starts = {sphase::testing::big_timeline(spec)};
  std::vector<double> times_ms;
  std::size_t bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    bytes = sphase::page_html(sphase::page_data(starts)).size();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times_ms.push_back(took.count());
  }
  file.figure(name + "_ms", sphase::median(times_ms));
  file.figure(name + "_mb", static_cast<double>(bytes) / 1e6);
}

}  // namespace

int main() try {
  sphase::BenchFile file("page");
  measure("one_node", {.nodes = 1, .samples = 1'000'000, .phases = 50}, file);
  measure("many_nodes", {.nodes = 512, .samples = 2000, .phases = 50}, file);
  return file.write() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_page: %s\n", error.what());
  return 1;
}
