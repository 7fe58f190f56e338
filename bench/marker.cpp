// What a pair of sphase_begin and sphase_end costs the program that marks.
//
//   inactive_pair_ns        the job runs without sphase
//   active_pair_ns          one thread, every record accepted, median
//   active_pair_p99_ns      the same, single pairs, 99th percentile
//   active8_pair_ns         eight threads at once: CPU time of the thread that marks, median
//   sleeping_pair_ns        each pair has to wake a sleeping reader, median
//   full_pair_ns            the ring is full and the markers are dropped, median
//   clock_pair_ns           floor: two clock_gettime(CLOCK_MONOTONIC)
//   function_pointer_pair_ns  floor: two calls of an empty function through a pointer
//
// Each subject runs in a process of its own, in batches that take turns with the two floors; rounds
// of all subjects take turns, too. The reader is another process and behaves like the recorder: it
// sleeps until the bell rings, drains, and sleeps for nine times as long as that took. A batch is
// half a ring, and the next one starts when it is drained; at full speed the ring would overflow,
// and what that costs is full_pair_ns.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench_file.h"
#include "common/clock.h"
#include "marker/sphase.h"
#include "tests/marker/fake_reader.h"

namespace {

using sphase::clock_ns;
using sphase::testing::FakeReader;
using sphase::testing::FakeSetup;

/// Figure -> one value per batch. Unit: ns per pair.
using Samples = std::map<std::string, std::vector<double>>;

constexpr int kPairs = 1000;       // of a batch: 2000 of 4096 records
constexpr int kThreads = 8;        //
constexpr int kThreadPairs = 200;  // of a batch and thread: 3200 of 4096 records

struct Effort {
  int rounds;
  int batches;  // per round and subject
  int singles;  // single pairs timed per round
};
constexpr Effort kFull{20, 200, 20'000};
constexpr Effort kQuick{4, 60, 10'000};

__attribute__((noinline)) int hook_begin(const char* name) {
  __asm__ volatile("" : : "r"(name) : "memory");
  return 0;
}
__attribute__((noinline)) int hook_end(const char* name) {
  __asm__ volatile("" : : "r"(name) : "memory");
  return 0;
}
int (*volatile begin_pointer)(const char*) = hook_begin;
int (*volatile end_pointer)(const char*) = hook_end;

void mark_pair() {
  sphase_begin("solve");
  sphase_end("solve");
}

template <typename Pair>
double time_pairs(int pairs, Pair pair, clockid_t clock = CLOCK_MONOTONIC) {
  const std::int64_t start = clock_ns(clock);
  for (int i = 0; i < pairs; ++i) pair();
  return static_cast<double>(clock_ns(clock) - start) / pairs;
}

void time_floors(Samples& samples) {
  samples["clock_pair_ns"].push_back(time_pairs(kPairs, [] {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_MONOTONIC, &now);
  }));
  samples["function_pointer_pair_ns"].push_back(time_pairs(kPairs, [] {
    begin_pointer("solve");
    end_pointer("solve");
  }));
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

// --- in a child process -------------------------------------------------------------------------

void send_all(int fd, const void* data, std::size_t bytes) {
  if (write(fd, data, bytes) != static_cast<ssize_t>(bytes)) _exit(1);
}

/// Runs `body` in a child and returns its samples; empty if it failed.
Samples in_child(const std::string& socket, const std::function<Samples()>& body) {
  int result[2];
  if (pipe(result) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(result[0]);
    unsetenv(SPHASE_SOCKET_ENV);
    if (!socket.empty()) setenv(SPHASE_SOCKET_ENV, socket.c_str(), 1);
    const auto bytes = nlohmann::json::to_cbor(nlohmann::json(body()));
    send_all(result[1], bytes.data(), bytes.size());
    _exit(0);
  }
  close(result[1]);
  std::vector<std::uint8_t> bytes;
  std::uint8_t buffer[65536];
  ssize_t n = 0;
  while ((n = read(result[0], buffer, sizeof buffer)) > 0) {
    bytes.insert(bytes.end(), buffer, buffer + n);
  }
  close(result[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 || bytes.empty()) return {};
  return nlohmann::json::from_cbor(bytes).get<Samples>();
}

Samples measure_inactive(const Effort& effort) {
  Samples samples;
  if (sphase_active() != 0) return samples;
  for (int i = 0; i < effort.batches; ++i) {
    samples["inactive_pair_ns"].push_back(time_pairs(kPairs, mark_pair));
    time_floors(samples);
  }
  return samples;
}

bool is_drained(const sphase_ring* ring) {
  return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) ==
         __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
}

void wait_drained(const sphase_ring* ring) {
  while (!is_drained(ring)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Samples measure_active(const Effort& effort, FakeReader& reader) {
  Samples samples;
  if (sphase_active() == 0) return samples;
  const std::uint64_t dropped = reader.dropped();
  for (int i = 0; i < effort.batches; ++i) {
    wait_drained(reader.ring());
    samples["active_pair_ns"].push_back(time_pairs(kPairs, mark_pair));
    time_floors(samples);
  }
  for (int i = 0; i < effort.singles; ++i) {
    if (i % kPairs == 0) wait_drained(reader.ring());
    samples["one_clock_ns"].push_back(time_pairs(1, [] {}));
    samples["single_pair_ns"].push_back(time_pairs(1, mark_pair));
  }
  return reader.dropped() == dropped ? samples : Samples{};
}

Samples measure_sleeping(const Effort& effort, FakeReader& reader) {
  Samples samples;
  if (sphase_active() == 0) return samples;
  for (int i = 0; i < effort.batches; ++i) {
    while (__atomic_load_n(&reader.ring()->bell, __ATOMIC_ACQUIRE) != 1 ||
           !is_drained(reader.ring())) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // it is about to sleep
    samples["sleeping_pair_ns"].push_back(time_pairs(1, mark_pair));
  }
  return samples;
}

Samples measure_active8(const Effort& effort, FakeReader& reader) {
  Samples samples;
  if (sphase_active() == 0) return samples;
  std::vector<std::vector<double>> of_thread(kThreads);
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto& mine : of_thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < effort.batches; ++i) {
        wait_drained(reader.ring());
        together.arrive_and_wait();
        mine.push_back(time_pairs(kThreadPairs, mark_pair, CLOCK_THREAD_CPUTIME_ID));
        together.arrive_and_wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto& all = samples["active8_pair_ns"];
  for (const auto& mine : of_thread) all.insert(all.end(), mine.begin(), mine.end());
  return samples;
}

Samples measure_full(const Effort& effort, FakeReader& reader) {
  Samples samples;
  if (sphase_active() == 0) return samples;
  while (reader.dropped() == 0) mark_pair();
  for (int i = 0; i < effort.batches; ++i) {
    samples["full_pair_ns"].push_back(time_pairs(kPairs, mark_pair));
  }
  return samples;
}

// --- the reader's process -----------------------------------------------------------------------

/// A reader that serves in a child process until this is destroyed.
class ReaderProcess {
 public:
  explicit ReaderProcess(const FakeSetup& setup) : reader_(setup) {
    if (pipe(alive_) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      close(alive_[1]);
      reader_.only_count();
      reader_.serve();
      char byte = 0;
      while (read(alive_[0], &byte, 1) > 0) {
      }
      _exit(0);
    }
    close(alive_[0]);
  }
  ~ReaderProcess() {
    close(alive_[1]);
    waitpid(child_, nullptr, 0);
  }
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  FakeReader& reader() { return reader_; }

 private:
  FakeReader reader_;
  int alive_[2] = {-1, -1};
  pid_t child_ = -1;
};

void add(Samples& all, const Samples& some) {
  for (const auto& [name, values] : some) {
    auto& to = all[name];
    to.insert(to.end(), values.begin(), values.end());
  }
}

Samples measure(const Effort& effort) {
  FakeSetup busy;
  busy.bounded_duty = true;
  FakeSetup stuck;
  stuck.drains = false;
  ReaderProcess draining(busy);
  ReaderProcess full(stuck);
  FakeReader& reader = draining.reader();
  Samples all;
  for (int round = 0; round < effort.rounds; ++round) {
    add(all, in_child("", [&] { return measure_inactive(effort); }));
    add(all, in_child(reader.path(), [&] { return measure_active(effort, reader); }));
    add(all, in_child(reader.path(), [&] { return measure_sleeping(effort, reader); }));
    add(all, in_child(reader.path(), [&] { return measure_active8(effort, reader); }));
    add(all, in_child(full.reader().path(), [&] { return measure_full(effort, full.reader()); }));
  }
  return all;
}

// --- the result ---------------------------------------------------------------------------------

struct Figure {
  const char* key;
  const char* samples;
  double quantile;
};

constexpr Figure kFigures[] = {
    {"inactive_pair_ns", "inactive_pair_ns", 0.5},
    {"active_pair_ns", "active_pair_ns", 0.5},
    {"active_pair_p99_ns", "single_pair_ns", 0.99},
    {"active8_pair_ns", "active8_pair_ns", 0.5},
    {"sleeping_pair_ns", "sleeping_pair_ns", 0.5},
    {"full_pair_ns", "full_pair_ns", 0.5},
    {"clock_pair_ns", "clock_pair_ns", 0.5},
    {"function_pointer_pair_ns", "function_pointer_pair_ns", 0.5},
};

/// What the two looks at the clock around one pair cost, which is not the pair's.
double clock_cost(const Samples& samples, const std::string& key) {
  const auto found = samples.find("one_clock_ns");
  const bool is_single = key == "active_pair_p99_ns" || key == "sleeping_pair_ns";
  return is_single && found != samples.end() ? quantile(found->second, 0.5) : 0;
}

void write_figures(const Samples& samples, sphase::BenchFile& file) {
  for (const Figure& figure : kFigures) {
    const auto found = samples.find(figure.samples);
    if (found == samples.end() || found->second.empty()) {
      file.missing(figure.key, "no batch in which the marker was in the state to be measured");
      continue;
    }
    const double ns = quantile(found->second, figure.quantile) - clock_cost(samples, figure.key);
    file.figure(figure.key, std::round(ns * 100) / 100);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "bench_marker: unknown argument '%s'; what is right is --quick\n",
                 argv[1]);
    return 2;
  }
  sphase::BenchFile file("marker");
  write_figures(measure(quick ? kQuick : kFull), file);
  return file.write() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_marker: %s\n", error.what());
  return 1;
}
