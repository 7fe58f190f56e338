// A made-up program whose rows look like those that a real one leaves. Fixed seed: every run of the
// bench stores the same rows.
//
// What it does: a solver of 4 tasks on 4 CPUs. Each is busy for 93 to 99 % of the time. Memory
// grows for a while, then goes up and down by some hundred pages; page cache grows with what is
// written; a line of log now and then, a checkpoint of 64 MiB every minute. Times carry the jitter
// that the recorder has: some 50 µs late, more now and then.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "spank/recorder/store/run_rows.h"

namespace sphase {

class Program {
 public:
  Program(std::uint64_t seed, std::int64_t begun_ns) : random_(seed), now_ns_(begun_ns) {}

  std::int64_t now_ns() const { return now_ns_; }

  /// A sample `gap_ns` (and the jitter) after the last one.
  SampleRow sample(const char* kind, std::int64_t gap_ns) {
    const std::int64_t step_ns = gap_ns + (late_ns() - std::exchange(late_, next_late_));
    now_ns_ += step_ns;
    run(step_ns);
    SampleRow row;
    row.time_ns = now_ns_;
    row.kind = kind;
    row.cpu_time_ns = cpu_ns_;
    row.memory.anon = anon_pages_ * kPage;
    row.memory.file = file_pages_ * kPage;
    row.memory.shmem = 33 * kPage;
    row.memory.kernel = kernel_pages_ * kPage;
    row.memory.current =
        *row.memory.anon + *row.memory.file + *row.memory.shmem + *row.memory.kernel;
    peak_ = std::max(peak_, *row.memory.current);
    row.memory.peak = peak_;
    row.io = io_;
    row.processes = 5;
    return row;
  }

  /// Instance `number` of an inner phase: about `wall_ns` long, the next one right after it.
  PhaseRow phase(const std::string& path, std::uint32_t task, std::int64_t number, int depth,
                 std::int64_t wall_ns) {
    PhaseRow row;
    row.task = task;
    row.path = path;
    row.number = number;
    row.depth = depth;
    row.begin_ns = now_ns_ + static_cast<std::int64_t>(between(500, 4'000));
    row.wall_ns = std::llround(static_cast<double>(wall_ns) * normal(1, 0.02));
    row.end_ns = row.begin_ns + *row.wall_ns;
    // A thread that works has almost its whole time on the CPU; a stamp is some µs old.
    row.cpu = CpuTime{*row.wall_ns - static_cast<std::int64_t>(between(2'000, 60'000)),
                      static_cast<std::int64_t>(between(100, 900)), "process"};
    if (between(0, 1) < 0.2) anon_pages_ += std::llround(normal(0, 12));
    row.memory_peak_bytes = (anon_pages_ + kernel_pages_ + 33) * kPage;
    row.edge_lag_ns = static_cast<std::int64_t>(between(22'000, 75'000));
    now_ns_ = *row.end_ns;
    return row;
  }

 private:
  static constexpr std::int64_t kPage = 4096;

  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  double normal(double mean, double deviation) {
    return std::normal_distribution<double>(mean, deviation)(random_);
  }
  std::int64_t late_ns() {
    next_late_ = static_cast<std::int64_t>(between(30'000, 90'000));
    if (between(0, 1) < 0.03) next_late_ += static_cast<std::int64_t>(between(0, 4'000'000));
    return next_late_;
  }

  void run(std::int64_t step_ns) {
    const auto seconds = static_cast<double>(step_ns) / 1e9;
    ran_s_ += seconds;
    cpu_ns_ += std::llround(static_cast<double>(step_ns) * 4 * between(0.93, 0.99));
    const double noise = 300 * std::min(1.0, seconds);
    anon_pages_ += std::llround(normal(ran_s_ < 60 ? 4'000 * seconds : 0, noise));
    anon_pages_ = std::max<std::int64_t>(anon_pages_, 2'000);
    if (between(0, 1) < 0.2 * seconds) kernel_pages_ += std::llround(normal(0, 6));
    if (between(0, 1) < seconds) log(static_cast<std::int64_t>(between(60, 140)));
    if (ran_s_ >= next_checkpoint_s_) {
      next_checkpoint_s_ += 60;
      log(64 << 20);
      io_.write_bytes += 64 << 20;
    }
  }
  void log(std::int64_t bytes) {
    io_.write_call_bytes += bytes;
    unpaged_ += bytes;
    file_pages_ += unpaged_ / kPage;
    unpaged_ %= kPage;
  }

  std::mt19937_64 random_;
  std::int64_t now_ns_;
  std::int64_t late_ = 0, next_late_ = 0;
  double ran_s_ = 0, next_checkpoint_s_ = 60;
  std::int64_t cpu_ns_ = 12'000'000, anon_pages_ = 20'000, file_pages_ = 5'000;
  std::int64_t kernel_pages_ = 900, unpaged_ = 0, peak_ = 0;
  Io io_{3'145'728, 0, 9'437'184, 0};
};

}  // namespace sphase
