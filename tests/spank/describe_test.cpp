// What Slurm says about a step, as the recorder is told it.
#include <doctest/doctest.h>
#include <slurm/slurm.h>

#include <cstdint>
#include <cstring>
#include <string>

extern "C" {
#include "spank/describe.h"
}
#include "tests/spank/fake_spank.h"

namespace {

sphase_link_start describe(const char* options = "period=2s,profile=p",
                           const char* site_events = "") {
  sphase_site_options site;
  sphase_job_options job;
  char why[512];
  sphase_site_options_default(&site);
  std::snprintf(site.events, sizeof(site.events), "%s", site_events);
  sphase_job_options_parse(options, &job, why, sizeof(why));
  sphase_link_start out;
  std::memset(&out, 0x5a, sizeof(out));
  sphase_describe_step(nullptr, &site, &job, options, &out);
  return out;
}

}  // namespace

TEST_CASE("a list of ids is counted, and what is none is unknown") {
  struct Case {
    const char* text;
    std::uint64_t count;
  };
  for (const Case& c : {Case{"0", 1},
                        {"0-3", 4},
                        {"0-3,8", 5},
                        {"1,2,3", 3},
                        {"7-7", 1},
                        {"0-1023", 1024},
                        {"0,2-5,9,64-127", 70}}) {
    CAPTURE(c.text);
    CHECK(sphase_count_list(c.text) == c.count);
  }
  for (const char* wrong :
       {"", ",", "a", "0,", ",0", "0--1", "3-1", "0-", "-3", "-", " 0", "0 ", "+1", "0-3;5", "0x1f",
        "(null)", "0-99999999999999999999", "18446744073709551615", "0-3,"}) {
    CAPTURE(wrong);
    CHECK(sphase_count_list(wrong) == SPHASE_LINK_UNKNOWN);
  }
  CHECK(sphase_count_list(nullptr) == SPHASE_LINK_UNKNOWN);
}

TEST_CASE("an ordinary step") {
  fake_spank_reset();
  const sphase_link_start start = describe();
  CHECK(start.type == SPHASE_LINK_START);
  CHECK(start.version == SPHASE_LINK_VERSION);
  CHECK(start.job_id == 42);
  CHECK(std::string(start.step) == "0");
  CHECK(start.uid == getuid());
  CHECK(start.stepd_pid == static_cast<std::uint32_t>(getpid()));
  CHECK(start.restart_count == 0);
  CHECK(start.node_index == 0);
  CHECK(start.step_nodes == 1);
  CHECK(start.job_cpus == 2);
  CHECK(start.job_memory_bytes == 500ull << 20);
  CHECK(start.period_ns == 2'000'000'000);
  CHECK(std::string(start.cluster) == "fake");
  CHECK(std::string(start.job_name) == "name");
  CHECK(std::string(start.partition) == "debug");
  CHECK(std::string(start.account) == "");
  CHECK(std::string(start.slurm_version) == "22.05.8");
  CHECK(std::string(start.profile) == "p");
  CHECK(std::string(start.options) == "period=2s,profile=p");
}

TEST_CASE("a job's events go before the site's, and those before the usual ones") {
  fake_spank_reset();
  CHECK(std::string(describe("on").events) == "");
  CHECK(std::string(describe("on", "off").events) == "off");
  CHECK(std::string(describe("events=A+B", "off").events) == "A+B");
  CHECK(std::string(describe("events=off", "A").events) == "off");
}

TEST_CASE("batch and interactive steps are kinds, never numbers") {
  fake_spank_reset();
  fake_spank.step_id = SLURM_BATCH_SCRIPT;
  CHECK(std::string(describe().step) == "batch");
  fake_spank.step_id = SLURM_INTERACTIVE_STEP;
  CHECK(std::string(describe().step) == "interactive");
  fake_spank.step_id = 4000000000u;
  CHECK(std::string(describe().step) == "4000000000");
}

TEST_CASE("a job that is no array has no array id, whatever Slurm puts there") {
  fake_spank_reset();
  for (const std::uint32_t id : {0u, 42u}) {
    fake_spank.array_job_id = id;
    CHECK(describe().array_job_id == SPHASE_LINK_UNKNOWN);
    CHECK(describe().array_task_id == SPHASE_LINK_UNKNOWN);
  }
  fake_spank.array_job_id = 40;
  fake_spank.array_task_id = 3;
  CHECK(describe().array_job_id == 40);
  CHECK(describe().array_task_id == 3);
}

TEST_CASE("parts of a heterogeneous job, by its environment") {
  fake_spank_reset();
  CHECK(describe().het_job_id == SPHASE_LINK_UNKNOWN);
  fake_spank_env("SLURM_HET_JOB_ID", "41");
  fake_spank_env("SLURM_HET_JOB_OFFSET", "1");
  CHECK(describe().het_job_id == 41);
  CHECK(describe().het_offset == 1);
  for (const char* wrong : {"", "x", "1x", "-1", " 1", "99999999999999999999999999"}) {
    fake_spank_env("SLURM_HET_JOB_OFFSET", wrong);
    CHECK(describe().het_offset == SPHASE_LINK_UNKNOWN);
  }
}

TEST_CASE("parts of a heterogeneous job, by the ids of all components") {
  for (const char* word : {"HET", "PACK"}) {
    fake_spank_reset();
    fake_spank_env("SLURM_HET_SIZE", "3");
    const std::string name = std::string("SLURM_JOB_ID_") + word + "_GROUP_";
    for (int i = 0; i < 3; ++i) {
      fake_spank_env((name + std::to_string(i)).c_str(), std::to_string(40 + i).c_str());
    }
    CHECK(describe().het_job_id == 40);
    CHECK(describe().het_offset == 2);
    fake_spank.job_id = 99;  // none of them
    CHECK(describe().het_job_id == SPHASE_LINK_UNKNOWN);
  }
  fake_spank_reset();
  fake_spank_env("SLURM_HET_SIZE", "4294967295");
  CHECK(describe().het_job_id == SPHASE_LINK_UNKNOWN);
}

TEST_CASE("how often a job was requeued, where the environment says it") {
  fake_spank_reset();
  CHECK(describe().restart_count == 0);
  fake_spank_env("SLURM_RESTART_COUNT", "2");
  CHECK(describe().restart_count == 2);
  for (const char* wrong : {"x", "-1", "99999999999999", ""}) {
    fake_spank_env("SLURM_RESTART_COUNT", wrong);
    CHECK(describe().restart_count == 0);
  }
}

TEST_CASE("what an older Slurm does not know stays unknown, never 0") {
  fake_spank_reset();
  fake_spank.no_items = 1;
  const sphase_link_start start = describe();
  for (const std::uint64_t number :
       {start.array_job_id, start.node_index, start.step_nodes, start.step_tasks, start.node_tasks,
        start.job_cpus, start.step_cpus, start.job_memory_bytes, start.step_memory_bytes}) {
    CHECK(number == SPHASE_LINK_UNKNOWN);
  }
  CHECK(start.restart_count == 0);
  CHECK(std::string(start.slurm_version) == "");
}

TEST_CASE("no memory limit and no list of cores are unknown") {
  fake_spank_reset();
  fake_spank.memory_mib = 0;
  fake_spank.cores = nullptr;
  CHECK(describe().job_memory_bytes == SPHASE_LINK_UNKNOWN);
  CHECK(describe().job_cpus == SPHASE_LINK_UNKNOWN);
}

TEST_CASE("a name that is too long is cut, not lost") {
  fake_spank_reset();
  fake_spank_env("SLURM_JOB_NAME", std::string(500, 'j').c_str());
  CHECK(std::string(describe().job_name) == std::string(127, 'j'));
}
