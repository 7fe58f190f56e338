// Slurm's own notations, read. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/timeline/timeline.h"

namespace sphase {

/// "cpu=4,mem=2000M,node=2,billing=4" from slurmdbd's "1=4,2=2000,4=2,5=4"; others stay numbers.
std::string tres_in_words(const std::string& tres);
/// The count of a TRES ("mem" in B) in either notation.
Maybe tres_count(const std::string& tres, const std::string& name);
/// "4000M per node", "1000M per CPU"; nullopt for 0. It may carry Slurm's MEM_PER_CPU bit.
MaybeText requested_memory(std::uint64_t megabytes);
/// Memory that a job can get of a node, in MiB. `most` is a partition's MaxMemPerNode, or
/// MaxMemPerCPU with Slurm's MEM_PER_CPU bit; 0 and Slurm's "not set" are no cap.
std::uint64_t node_memory_mib(std::uint64_t memory_mib, std::uint64_t cpus, std::uint64_t most);
/// Memory of each node from the text of slurm_print_job_info, the only public way to it:
/// "     Nodes=n[1-2] CPU_IDs=0-1 Mem=300 GRES=". Pairs of host list expression and B.
std::vector<std::pair<std::string, std::int64_t>> parse_node_memory(const std::string& text);
/// "Resources" from the same text: "   JobState=PENDING Reason=Resources Dependency=(null)".
MaybeText parse_reason(const std::string& text);
/// Slurm's word for a job state (base state and flags), e.g. COMPLETED, RESIZING, REQUEUED.
std::string state_word(std::uint32_t state);
/// True for a word that says that the job, or this interval of it, is over.
bool is_over(const MaybeText& state);
/// J of "expand:J" in a dependency ("afterany:3,expand:12(unfulfilled)").
Maybe expanded_job(std::string_view dependency);
/// The same from a command line: "salloc --no-shell -d expand:12", "… --dependency=expand:12".
Maybe expanded_by_command(std::string_view command);

}  // namespace sphase
