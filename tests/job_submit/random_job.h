// A job_desc_msg_t in which every field that the plugin or slurmctld might look at is anything.
#pragma once

#include <random>

#include "tests/job_submit/fake_slurmctld.h"

namespace sphase::testing {

class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  /// Fills `job`; to be freed with free_job(). Now and then: thousands of environment entries, a
  /// script of a megabyte.
  void fill(job_desc_msg_t& job);

 private:
  std::uint64_t number();
  std::uint32_t below(std::uint32_t most) { return static_cast<std::uint32_t>(random_() % most); }
  std::string garbage(std::size_t most);
  char* text(const char* const* likely, std::size_t count);
  std::string option();
  void numbers(job_desc_msg_t& job);
  void arrays(job_desc_msg_t& job);
  char* script();

  std::mt19937_64 random_;
};

}  // namespace sphase::testing
