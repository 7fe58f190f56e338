// A million jobs in which everything is possible, and many threads at once.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/job_submit/fake_slurmctld.h"
#include "tests/job_submit/random_job.h"
#include "tests/job_submit/site.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

void submit(RandomJobs& jobs) {
  job_desc_msg_t job;
  char* message = nullptr;
  jobs.fill(job);
  REQUIRE(job_submit(&job, 0, &message) == SLURM_SUCCESS);
  free_job(job);
  free_string(message);
}

}  // namespace

TEST_CASE("a million random jobs: accepted, nothing lost, nothing freed that is not Slurm's") {
  const Site site("Partition=big ResizeMode=apply OptIn=nodes,cpus,memory,time\n");
  RandomJobs jobs(20261130);
  for (int i = 0; i < 1'000'000; ++i) submit(jobs);
  CHECK(living_allocations() == 0);
}

TEST_CASE("eight threads submit while table and configuration are replaced, cut and removed") {
  const Site site;
  std::atomic<bool> stop{false};
  std::atomic<int> submitted{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      RandomJobs jobs(i);
      while (!stop) {
        submit(jobs);
        ++submitted;
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  for (int round = 0; std::chrono::steady_clock::now() < end; ++round) {
    if (round % 5 == 0) site.conf("MinNodes=" + std::to_string(1 + round % 3) + "\n");
    if (round % 7 == 0) site.conf("MinNodes=oops\n");
    if (round % 3 == 0) (void)truncate(site.table_path().c_str(), 100 * (round % 30));
    if (round % 4 == 0) unlink(site.table_path().c_str());
    site.table();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(submitted > 100);
  CHECK(living_allocations() == 0);
}
