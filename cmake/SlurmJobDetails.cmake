# What libslurm tells about a job beyond its public structures differs by version: asks this one.
# Sets SPHASE_JOB_DETAILS, the source in collector/ that fits, and SPHASE_SLURM_NAMES_REASONS.
include(CheckCXXSymbolExists)
include(CheckLibraryExists)

set(CMAKE_REQUIRED_INCLUDES ${Slurm_INCLUDE_DIR})
set(CMAKE_REQUIRED_LIBRARIES ${Slurm_LIBRARY})
check_cxx_symbol_exists(slurm_print_job_info slurm/slurm.h SPHASE_SLURM_PRINTS_JOBS)
check_cxx_symbol_exists(slurm_job_cpus_allocated_on_node slurm/slurm.h SPHASE_SLURM_COUNTS_CPUS)
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)
check_library_exists(${Slurm_LIBRARY} slurm_job_state_reason_string "" SPHASE_SLURM_NAMES_REASONS)

if(SPHASE_SLURM_PRINTS_JOBS AND SPHASE_SLURM_COUNTS_CPUS)
  set(SPHASE_JOB_DETAILS records/job_details_printed.cpp)
else()
  set(SPHASE_JOB_DETAILS records/job_details_closed.cpp)
endif()
