// What slurmctld gives to a job_submit plugin: its allocator and its log. Every allocation is
// marked, so that freeing a job finds strings that are not Slurm's, and what was never freed is
// counted.
#pragma once

#include <slurm/slurm.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sphase::testing {

/// Copies into Slurm's memory; NULL for nullptr.
char* slurm_string(const char* text);
char** slurm_array(const std::vector<std::string>& entries);

/// A job as slurm_init_job_desc_msg() leaves it: everything unset.
void init_job(job_desc_msg_t& job);

/// Frees what slurmctld would. Aborts at a pointer that is not from Slurm's allocator.
void free_job(job_desc_msg_t& job);
void free_string(char*& text);

/// Allocations that live now, in all threads.
std::int64_t living_allocations();

/// Log lines so far.
std::int64_t log_lines();
std::string last_log_line();

}  // namespace sphase::testing
