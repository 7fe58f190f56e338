// plugin.c itself, in a fake slurmctld: the real table and configuration, Slurm's own struct.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/job_submit/fake_slurmctld.h"
#include "tests/job_submit/site.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// One job and the message about it, freed as slurmctld would.
class Job {
 public:
  Job() {
    init_job(desc);
    desc.user_id = 1001;
    desc.name = slurm_string("solver");
    desc.script = slurm_string(kScript);
    desc.min_nodes = desc.max_nodes = 4;
    desc.min_cpus = 4;
    desc.pn_min_memory = 8192;
    environment({"PATH=/bin"});
  }
  ~Job() {
    free_job(desc);
    free_string(message);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void environment(const std::vector<std::string>& entries) {
    desc.environment = slurm_array(entries);
    desc.env_size = static_cast<std::uint32_t>(entries.size());
  }
  void option(const std::string& value) {
    desc.spank_job_env = slurm_array({"OTHER=1", SPHASE_RESIZE_ENV "=" + value});
    desc.spank_job_env_size = 2;
  }
  void submit() { CHECK(job_submit(&desc, 0, &message) == SLURM_SUCCESS); }
  std::string said() const { return message != nullptr ? message : ""; }
  std::string comment() const { return desc.admin_comment != nullptr ? desc.admin_comment : ""; }
  std::string plan() const {
    for (std::uint32_t i = 0; i < desc.env_size; ++i) {
      if (strncmp(desc.environment[i], "SPHASE_PLAN=", 12) == 0) return desc.environment[i] + 12;
    }
    return "";
  }

  job_desc_msg_t desc;
  char* message = nullptr;
};

}  // namespace

TEST_CASE("a job that wants it gets the learned size, is told so, and carries audit and plan") {
  const Site site;
  {
    Job job;
    job.option("apply");
    job.submit();
    CHECK(job.desc.min_nodes == 1);
    CHECK(job.desc.max_nodes == 1);
    CHECK(job.desc.min_cpus == 1);
    CHECK(job.desc.pn_min_memory == 5120);
    CHECK(job.desc.time_limit == 30);
    CHECK(
        job.said() ==
        "sphase: nodes 4 -> 1, memory 8G -> 5G, time limit unset -> 0:30:00 (peak 4G in 14 runs); "
        "--phase-resize=off keeps yours");
    CHECK(job.comment() ==
          "sphase/1 profile=" + std::string(profile_key(1001, "", "solver", kScript).view()) +
              " mode=apply from=job advice=found runs=14 made=1764536000 "
              "asked=nodes:4,tasks:-,cpus:-,memory:8192,time:- set=nodes:1,memory:5120,time:30 "
              "would=- left=cpus:not-given");
    CHECK(job.plan().find("{\"version\":1,\"profile\":\"1001/~") == 0);
    CHECK(job.plan().find("{\"path\":\"solve\",\"nodes\":4,\"memory_mib\":3072,\"time_s\":60,"
                          "\"time_low_s\":50,\"time_high_s\":75,\"runs\":14}") !=
          std::string::npos);
    CHECK(job.desc.environment[job.desc.env_size] == nullptr);
  }
  CHECK(living_allocations() == 0);
}

TEST_CASE("by default it says what would do, and changes nothing") {
  const Site site;
  Job job;
  job.submit();
  CHECK(job.desc.min_nodes == 4);
  CHECK(job.desc.pn_min_memory == 8192);
  CHECK(job.desc.time_limit == NO_VAL);
  CHECK(
      job.said() ==
      "sphase: this would do: nodes 4 -> 1, memory 8G -> 5G, time limit unset -> 0:30:00 (peak 4G "
      "in 14 runs); --phase-resize=apply asks for it");
  CHECK(job.comment().find("would=nodes:1,memory:5120,time:30") != std::string::npos);
}

TEST_CASE("observe is silent and leaves its line, off leaves none") {
  const Site site;
  Job observed;
  observed.option("observe");
  observed.submit();
  CHECK(observed.said().empty());
  CHECK(observed.plan().empty());
  CHECK(observed.comment().find("mode=observe") != std::string::npos);
  Job off;
  off.option("off");
  off.submit();
  CHECK(off.said().empty());
  CHECK(off.comment().empty());
}

TEST_CASE("a named profile is looked up by its name") {
  const Site site;
  Job job;
  job.desc.spank_job_env =
      slurm_array({SPHASE_TELEMETRY_ENV "=period=1s,profile=named", SPHASE_RESIZE_ENV "=apply"});
  job.desc.spank_job_env_size = 2;
  job.submit();
  CHECK(job.desc.min_nodes == 2);
  CHECK(job.comment().find("profile=1001/named ") != std::string::npos);
}

TEST_CASE("another user's job with the same script gets nothing") {
  const Site site;
  Job job;
  job.desc.user_id = 1002;
  job.option("apply");
  job.submit();
  CHECK(job.desc.min_nodes == 4);
  CHECK(job.said().find("nothing was learned about it yet (profile 1002/~") != std::string::npos);
}

TEST_CASE("what others wrote into the job stays") {
  const Site site;
  Job job;
  job.option("apply");
  job.desc.admin_comment = slurm_string("ticket 7");
  job.message = slurm_string("hello from lua");
  free_job(job.desc);
  job.environment({"SPHASE_PLAN=mine", "A=1"});
  job.desc.name = slurm_string("solver");
  job.desc.script = slurm_string(kScript);
  job.desc.admin_comment = slurm_string("ticket 7");
  job.option("apply");
  job.submit();
  CHECK(job.plan() == "mine");
  CHECK(job.comment().find("ticket 7; sphase/1 ") == 0);
  CHECK(job.said().find("hello from lua\nsphase: ") == 0);
}

TEST_CASE("SLURM_NTASKS in the job's environment follows the nodes") {
  const Site site;
  Job job;
  free_job(job.desc);
  job.environment({"A=1", "SLURM_NTASKS=16", "SLURM_NPROCS=16", "SLURM_NTASKS_PER_NODE=4"});
  job.desc.name = slurm_string("solver");
  job.desc.script = slurm_string(kScript);
  job.desc.ntasks_per_node = 4;
  job.option("apply");
  job.submit();
  CHECK(job.desc.min_nodes == 1);
  CHECK(std::string(job.desc.environment[1]) == "SLURM_NTASKS=4");
  CHECK(std::string(job.desc.environment[2]) == "SLURM_NPROCS=4");
  CHECK(std::string(job.desc.environment[3]) == "SLURM_NTASKS_PER_NODE=4");
}

TEST_CASE("a dry run says everything") {
  const Site site;
  Job job;
  free_job(job.desc);
  job.environment({"SPHASE_EXPLAIN=1"});
  job.desc.name = slurm_string("solver");
  job.desc.script = slurm_string(kScript);
  job.option("apply");
  job.submit();
  CHECK(job.said().find("sphase: mode apply, by --phase-resize\n") != std::string::npos);
  CHECK(job.said().find("sphase: nodes 4 -> 1: would be changed\n") != std::string::npos);
  CHECK(job.said().find("sphase: CPUs per task unset: stays (it was not asked for)\n") !=
        std::string::npos);
  CHECK(job.said().find("a plan of 3 phases") != std::string::npos);
}

TEST_CASE(
    "a bad sphase.conf turns it off and says which line; the mended one is seen within a second") {
  const Site site;
  site.conf("MaxNodes=many\n");
  site.start();
  const auto submit = [] {
    Job job;
    job.option("apply");
    job.submit();
    return job.desc.min_nodes;
  };
  CHECK(poll_until([&] { return submit() == 4; }));
  CHECK(last_log_line().find("line 2: MaxNodes=many: what is right is a number") !=
        std::string::npos);
  site.conf("MinNodes=2\n");
  CHECK(poll_until([&] { return submit() == 2; }));
  CHECK(last_log_line().find("sphase.conf: read") != std::string::npos);
}

TEST_CASE("without a table, or with a broken one, jobs go on; the log has one line a minute") {
  const Site site;
  const auto before = log_lines();
  const auto nodes_after = [&] {
    Job job;
    job.option("apply");
    job.submit();
    return job.desc.min_nodes;
  };
  std::ofstream(site.table_path(), std::ios::trunc) << "not a table at all";
  for (int i = 0; i < 100; ++i) CHECK(nodes_after() == 4);
  CHECK(truncate(site.table_path().c_str(), 0) == 0);
  CHECK(nodes_after() == 4);
  CHECK(unlink(site.table_path().c_str()) == 0);
  CHECK(nodes_after() == 4);
  CHECK(mkdir(site.table_path().c_str(), 0700) == 0);
  CHECK(nodes_after() == 4);
  CHECK(log_lines() - before <= 1);
}

TEST_CASE("hooks accept what slurmctld never sends") {
  CHECK(job_submit(nullptr, 0, nullptr) == SLURM_SUCCESS);
  job_desc_msg_t empty;
  init_job(empty);
  CHECK(job_submit(&empty, 0, nullptr) == SLURM_SUCCESS);
  free_job(empty);
  CHECK(fini() == SLURM_SUCCESS);
}
