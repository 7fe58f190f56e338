#include "tests/job_submit/random_job.h"

#include <iterator>

#include "common/resize_option.h"

namespace sphase::testing {

std::uint64_t RandomJobs::number() {
  switch (below(6)) {
    case 0:
      return 0;
    case 1:
      return ~std::uint64_t{0};
    case 2:
      return below(8);
    case 3:
      return NO_VAL64 - 3 + below(8);
    case 4:
      return random_() >> below(64);
    default:
      return NO_VAL - 3 + below(8);
  }
}

std::string RandomJobs::garbage(std::size_t most) {
  std::string bytes(random_() % most, ' ');
  for (char& byte : bytes) byte = static_cast<char>(1 + below(255));
  return bytes;
}

char* RandomJobs::text(const char* const* likely, std::size_t count) {
  const std::uint32_t choice = below(4);
  if (choice == 0) return nullptr;
  if (choice == 1) return slurm_string(garbage(300).c_str());
  return slurm_string(likely[random_() % count]);
}

void RandomJobs::numbers(job_desc_msg_t& job) {
  for (auto* field : {&job.argc,         &job.alloc_sid,    &job.cpu_freq_min,
                      &job.cpu_freq_max, &job.cpu_freq_gov, &job.delay_boot,
                      &job.group_id,     &job.job_id,       &job.nice,
                      &job.num_tasks,    &job.priority,     &job.profile,
                      &job.site_factor,  &job.task_dist,    &job.time_limit,
                      &job.time_min,     &job.min_cpus,     &job.max_cpus,
                      &job.min_nodes,    &job.max_nodes,    &job.pn_min_tmp_disk,
                      &job.req_switch,   &job.wait4switch}) {
    *field = below(3) == 0 ? NO_VAL : static_cast<std::uint32_t>(number());
  }
  for (auto* field : {&job.alloc_resp_port,
                      &job.contiguous,
                      &job.core_spec,
                      &job.cpu_bind_type,
                      &job.immediate,
                      &job.kill_on_node_fail,
                      &job.mail_type,
                      &job.mem_bind_type,
                      &job.other_port,
                      &job.plane_size,
                      &job.reboot,
                      &job.restart_cnt,
                      &job.requeue,
                      &job.shared,
                      &job.wait_all_nodes,
                      &job.warn_flags,
                      &job.warn_signal,
                      &job.warn_time,
                      &job.cpus_per_task,
                      &job.boards_per_node,
                      &job.sockets_per_board,
                      &job.sockets_per_node,
                      &job.cores_per_socket,
                      &job.threads_per_core,
                      &job.ntasks_per_node,
                      &job.ntasks_per_socket,
                      &job.ntasks_per_core,
                      &job.ntasks_per_board,
                      &job.ntasks_per_tres,
                      &job.pn_min_cpus,
                      &job.x11,
                      &job.x11_target_port}) {
    *field = below(2) == 0 ? NO_VAL16 : static_cast<std::uint16_t>(number());
  }
  job.bitflags = number();
  job.pn_min_memory = number();
  job.begin_time = static_cast<time_t>(number());
  job.het_job_offset = below(4) != 0 ? NO_VAL : static_cast<std::uint32_t>(number());
  job.user_id = below(2) == 0 ? 1001 : static_cast<std::uint32_t>(number());
}

std::string RandomJobs::option() {
  static const char* const options[] = {"apply",   "apply,time", "apply,plan",      "off",
                                        "observe", "advise",     "apply,time,plan", "",
                                        ",",       "apply,",     "apply,junk"};
  return below(5) == 0 ? garbage(200) : options[below(std::size(options))];
}

void RandomJobs::arrays(job_desc_msg_t& job) {
  std::vector<std::string> environment;
  const std::uint32_t many = below(500) == 0 ? 3000 : below(6);
  for (std::uint32_t i = 0; i < many; ++i) environment.push_back(garbage(40));
  if (below(4) == 0) environment.push_back("SPHASE_EXPLAIN=1");
  if (below(4) == 0) environment.push_back("SLURM_NTASKS=" + std::to_string(number()));
  if (below(8) == 0) environment.push_back("SLURM_NTASKS=" + garbage(5));
  if (below(8) == 0) environment.push_back("SPHASE_PLAN=" + garbage(40));
  if (below(4) != 0) {
    job.environment = slurm_array(environment);
    job.env_size = static_cast<std::uint32_t>(environment.size());
    if (!environment.empty() && below(8) == 0) free_string(job.environment[0]);
  }
  std::vector<std::string> spank = {garbage(40)};
  if (below(2) == 0) spank.push_back(SPHASE_RESIZE_ENV "=" + option());
  if (below(3) == 0) spank.push_back(SPHASE_TELEMETRY_ENV "=profile=named");
  if (below(5) == 0) spank.push_back(SPHASE_TELEMETRY_ENV "=" + garbage(600));
  if (below(4) != 0) {
    job.spank_job_env = slurm_array(spank);
    job.spank_job_env_size = static_cast<std::uint32_t>(spank.size());
  }
}

char* RandomJobs::script() {
  static const char* const scripts[] = {"#!/bin/bash\n./solver\n",
                                        "",
                                        "\n",
                                        "#",
                                        "srun",
                                        "sphase",
                                        "srun -",
                                        "sphase run --nodes",
                                        "srun --mem\\",
                                        "\\",
                                        "#!/bin/bash\nsphase begin a --nodes 2\nsrun ./x\n"};
  if (below(3000) == 0) return slurm_string(std::string(1 << 20, "srun -x\n"[below(8)]).c_str());
  if (below(8) == 0) return slurm_string(garbage(5000).c_str());
  return text(scripts, std::size(scripts));
}

void RandomJobs::fill(job_desc_msg_t& job) {
  static const char* const names[] = {"solver", "", "a1b22"};
  static const char* const partitions[] = {"debug", "debug,big", ",", ",,a", ""};
  static const char* const accounts[] = {"physics", ""};
  static const char* const none[] = {nullptr, "", "1-10", "gpu:1", "expand:7"};
  init_job(job);
  numbers(job);
  arrays(job);
  job.name = text(names, std::size(names));
  job.partition = text(partitions, std::size(partitions));
  job.account = text(accounts, std::size(accounts));
  job.script = script();
  for (char** field : {&job.array_inx, &job.dependency, &job.reservation, &job.tres_per_job,
                       &job.tres_per_node, &job.tres_per_socket, &job.tres_per_task,
                       &job.cpus_per_tres, &job.mem_per_tres, &job.req_nodes, &job.features}) {
    *field = below(20) == 0 ? text(none, std::size(none)) : nullptr;
  }
  if (below(4) == 0) job.admin_comment = slurm_string(garbage(100).c_str());
}

}  // namespace sphase::testing
