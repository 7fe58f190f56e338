// Part of ./dev bench submit: what one call of job_submit() takes, in a fake slurmctld.
//
// Tables of 100 000 and of 1 000 profiles of three phases each, half of them named and half known
// by the hash of their script. Each submission has a script of 2 KB, 80 variables, and asks for
// what was learned (--phase-resize=apply): every step of the hook runs, from the options to the
// plan. Making and freeing the job is not timed. The series take turns, so that a noisy machine
// slows all.
//
// Wall time is taken inside the CPU time of the thread: a call that was interrupted by other
// programs has a large wall time and an ordinary CPU time. A last series sleeps for a millisecond
// before each call, as slurmctld does between two submissions: caches and CPU are cold then.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/profile_key.h"
#include "tests/common/tools.h"
#include "tests/job_submit/fake_slurmctld.h"
#include "tests/job_submit/submission.h"
#include "tests/job_submit/table_file.h"

extern "C" {
#include "common/resize_option.h"
#include "job_submit/slurm_symbols.h"
}

namespace sphase::testing {
namespace {

constexpr std::uint32_t kUid = 1001;
constexpr int kVariables = 80;

/// A batch script of about 2 KB; another `number`, another profile.
std::string script_of(std::size_t number) {
  std::string script =
      "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --mem=8G\n#SBATCH --output=%x-%j.out\n"
      "set -euo pipefail\nmodule purge\nmodule load gcc/12.2 openmpi/4.1\n"
      "export CASE=case_" +
      std::to_string(number) + "\n";
  for (int i = 0; script.size() < 1900; ++i) {
    script += "cp -v \"$SLURM_SUBMIT_DIR\"/input/field_" + std::to_string(i) +
              ".dat  \"$SCRATCH/$CASE/\"   # input\n";
  }
  return script + "srun ./solver --case \"$CASE\" --restart latest\n";
}

/// The number of a named profile, or of a hashed one.
std::string named(std::size_t number) { return "p" + std::to_string(number); }

/// A site with a table of `profiles`, half named and half hashed.
class BenchSite {
 public:
  explicit BenchSite(std::size_t profiles) : each_(profiles / 2) {
    const std::string table = folder_ / "advice.cdb";
    folder_.write("sphase.conf", "AdviceTable=" + table + "\n");
    Advice advice = learned();
    add_phases(advice);
    advice.head.expires_s = std::int64_t{1} << 40;
    advice.head.nodes = 1;
    TableFile file(table);
    for (std::size_t i = 0; i < each_; ++i) {
      file.add(profile_key(kUid, named(i), "", "").view(), advice);
      file.add(profile_key(kUid, "", "solver", script_of(i)).view(), advice);
    }
    file.done();
  }
  std::size_t each() const { return each_; }
  /// The plugin uses this site from now on.
  void enter() const {
    setenv("SPHASE_CONF", (folder_ / "sphase.conf").c_str(), 1);
    if (init() != SLURM_SUCCESS) throw std::runtime_error("init");
  }

 private:
  std::size_t each_;
  TempFolder folder_;
};

/// One job as sbatch sends it, freed as slurmctld would.
class Job {
 public:
  Job(std::size_t number, bool by_name) {
    init_job(desc);
    desc.user_id = kUid;
    desc.name = slurm_string("solver");
    desc.partition = slurm_string("debug");
    desc.script = slurm_string(script_of(number).c_str());
    desc.min_nodes = desc.max_nodes = 4;
    desc.min_cpus = 4;
    desc.pn_min_memory = 8192;
    std::vector<std::string> entries;
    entries.reserve(kVariables);
    for (int i = 0; i < kVariables; ++i) {
      entries.push_back("VARIABLE_" + std::to_string(i) + "=" + std::string(40, 'x'));
    }
    desc.environment = slurm_array(entries);
    desc.env_size = kVariables;
    std::vector<std::string> options = {SPHASE_RESIZE_ENV "=apply"};
    options.push_back(SPHASE_TELEMETRY_ENV "=period=1s" +
                      (by_name ? ",profile=" + named(number) : std::string()));
    desc.spank_job_env = slurm_array(options);
    desc.spank_job_env_size = static_cast<std::uint32_t>(options.size());
  }
  ~Job() {
    free_job(desc);
    free_string(message);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  job_desc_msg_t desc;
  char* message = nullptr;
};

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

struct Series {
  const BenchSite& site;
  bool by_name;
  std::vector<double> wall_us, cpu_us;
};

/// One submission; a job that did not get its learned size is a bug of the bench.
void submit(Series& series, std::mt19937& random, bool counts) {
  Job job(random() % series.site.each(), series.by_name);
  const std::int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::int64_t wall = now_ns(CLOCK_MONOTONIC);
  job_submit(&job.desc, kUid, &job.message);
  const std::int64_t wall_end = now_ns(CLOCK_MONOTONIC);
  const std::int64_t cpu_end = now_ns(CLOCK_THREAD_CPUTIME_ID);
  if (job.desc.min_nodes != 1 || job.desc.env_size != kVariables + 1) {
    throw std::runtime_error(std::string("no advice: ") + (job.message ? job.message : ""));
  }
  if (!counts) return;
  series.wall_us.push_back(static_cast<double>(wall_end - wall) / 1000);
  series.cpu_us.push_back(static_cast<double>(cpu_end - cpu) / 1000);
}

double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(share * last)];
}

nlohmann::json summary(const std::vector<double>& wall_us, const std::vector<double>& cpu_us) {
  return {{"calls", wall_us.size()},
          {"p50_us", at_share(wall_us, 0.5)},
          {"p99_us", at_share(wall_us, 0.99)},
          {"p999_us", at_share(wall_us, 0.999)},
          {"max_us", at_share(wall_us, 1)},
          {"above_1ms",
           std::count_if(wall_us.begin(), wall_us.end(), [](double us) { return us > 1000; })},
          {"cpu_p50_us", at_share(cpu_us, 0.5)},
          {"cpu_p99_us", at_share(cpu_us, 0.99)},
          {"cpu_max_us", at_share(cpu_us, 1)}};
}

/// Both series of one table.
nlohmann::json together(const Series& first, const Series& second) {
  std::vector<double> wall = first.wall_us, cpu = first.cpu_us;
  wall.insert(wall.end(), second.wall_us.begin(), second.wall_us.end());
  cpu.insert(cpu.end(), second.cpu_us.begin(), second.cpu_us.end());
  return summary(wall, cpu);
}

double rss_kib() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

int run(std::size_t calls, std::size_t profiles) {
  constexpr std::size_t kChunk = 1000;
  const BenchSite large(profiles), small(1000);
  std::array<Series, 4> all{Series{large, true, {}, {}}, Series{large, false, {}, {}},
                            Series{small, true, {}, {}}, Series{small, false, {}, {}}};
  std::mt19937 random(20261130);
  for (Series& series : all) {
    for (auto* values : {&series.wall_us, &series.cpu_us}) {
      values->assign(calls, 0);  // the pages are there before RSS is looked at
      values->clear();
    }
    series.site.enter();
    for (std::size_t i = 0; i < kChunk; ++i) submit(series, random, false);
  }
  const double before_kib = rss_kib();
  for (std::size_t done = 0; done < calls; done += kChunk) {
    for (Series& series : all) {
      series.site.enter();
      for (std::size_t i = 0; i < kChunk; ++i) submit(series, random, true);
    }
  }
  const double growth_kib = rss_kib() - before_kib;
  Series paused{large, true, {}, {}};
  large.enter();
  for (std::size_t i = 0; i < calls / 25; ++i) {
    usleep(1000);
    submit(paused, random, true);
  }
  const nlohmann::json result = {{"profiles", profiles},
                                 {"rss_growth_kib", growth_kib},
                                 {"allocations_left", living_allocations()},
                                 {"large", together(all[0], all[1])},
                                 {"large_named", summary(all[0].wall_us, all[0].cpu_us)},
                                 {"large_hashed", summary(all[1].wall_us, all[1].cpu_us)},
                                 {"small", together(all[2], all[3])},
                                 {"paused", summary(paused.wall_us, paused.cpu_us)}};
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace sphase::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_submit_hook CALLS PROFILES\n");
    return 2;
  }
  try {
    return sphase::testing::run(std::strtoul(argv[1], nullptr, 10),
                                std::strtoul(argv[2], nullptr, 10));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_submit_hook: %s\n", error.what());
    return 1;
  }
}
