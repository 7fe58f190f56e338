// Source: collector/records/records_words.cpp.
#include "collector/records/records_words.h"

#include <doctest/doctest.h>

using namespace sphase;

TEST_CASE("slurmdbd's resources become slurmctld's words") {
  CHECK(tres_in_words("1=4,2=2000,4=2,5=4") == "cpu=4,mem=2000M,node=2,billing=4");
  CHECK(tres_in_words("cpu=4,mem=2000M,node=2,billing=4") == "cpu=4,mem=2000M,node=2,billing=4");
  CHECK(tres_in_words("1=4,1001=2") == "cpu=4,1001=2");
  CHECK(tres_in_words("") == "");
}

TEST_CASE("a resource that nobody measured is left out") {
  CHECK(tres_in_words("1=4,3=18446744073709551614,4=2") == "cpu=4,node=2");
}

TEST_CASE("counts are read in either notation, memory in bytes") {
  CHECK(tres_count("cpu=4,mem=2000M,node=2", "node") == 2);
  CHECK(tres_count("cpu=4,mem=2000M,node=2", "mem") == 2000LL << 20);
  CHECK(tres_count("mem=1.5G", "mem") == 1536LL << 20);
  CHECK(tres_count("mem=2T", "mem") == 2LL << 40);
  CHECK(tres_count("2=300", "mem") == 300LL << 20);
  CHECK_FALSE(tres_count("cpu=4", "mem").has_value());
  CHECK_FALSE(tres_count("mem=lots", "mem").has_value());
}

TEST_CASE("requested memory says whether it is per node or per CPU") {
  CHECK(requested_memory(4000) == "4000M per node");
  CHECK(requested_memory(0x8000000000000000ULL | 500) == "500M per CPU");
  CHECK_FALSE(requested_memory(0).has_value());
  CHECK_FALSE(requested_memory(0xfffffffffffffffeULL).has_value());  // NO_VAL64
}

TEST_CASE("memory of each node is read from what scontrol shows") {
  const auto found = parse_node_memory(
      "   JOB_GRES=(null)\n     Nodes=n[1-2] CPU_IDs=0-1 Mem=300 GRES=\n"
      "     Nodes=n3 CPU_IDs=0-3 Mem=1G GRES=gpu:1(IDX:0)\n   MinCPUsNode=1 MinMemoryNode=300M\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0] == std::pair<std::string, std::int64_t>("n[1-2]", 300LL << 20));
  CHECK(found[1] == std::pair<std::string, std::int64_t>("n3", 1LL << 30));
  CHECK(parse_node_memory("     Nodes=n1 CPU_IDs=0 Mem=0 GRES=\n").empty());
}

TEST_CASE("the reason why a job waits is what stands between Reason and Dependency") {
  CHECK(parse_reason("   JobState=PENDING Reason=Resources Dependency=(null)\n") == "Resources");
  CHECK_FALSE(parse_reason("   JobState=PENDING\n").has_value());
}

TEST_CASE("states are Slurm's words; a flag that ends an interval comes first") {
  CHECK(state_word(0) == "PENDING");
  CHECK(state_word(3) == "COMPLETED");
  CHECK(state_word(11) == "OUT_OF_MEMORY");
  CHECK(state_word(1 | 1 << 13) == "RESIZING");
  CHECK(state_word(4 | 1 << 10) == "REQUEUED");
  CHECK(state_word(1 | 1 << 15) == "RUNNING");
  CHECK(state_word(99) == "STATE_99");
}

TEST_CASE("what a job can get of a node is capped by its partition, per node or per CPU") {
  constexpr std::uint64_t kPerCpu = 0x8000000000000000;
  CHECK(node_memory_mib(64000, 16, 0) == 64000);
  CHECK(node_memory_mib(64000, 16, 0xfffffffffffffffe) == 64000);  // NO_VAL64
  CHECK(node_memory_mib(64000, 16, 0xffffffffffffffff) == 64000);  // INFINITE64
  CHECK(node_memory_mib(64000, 16, 32000) == 32000);
  CHECK(node_memory_mib(64000, 16, kPerCpu | 1000) == 16000);
  CHECK(node_memory_mib(64000, 16, kPerCpu | 8000) == 64000);
}

TEST_CASE("whom a job expands stands in its dependency or its command line") {
  CHECK(expanded_job("expand:12") == 12);
  CHECK(expanded_job("afterany:3,expand:12(unfulfilled)") == 12);
  for (const char* none : {"", "expand:", "expand:x", "expand:0", "afterok:12"}) {
    CHECK_FALSE(expanded_job(none).has_value());
  }
  CHECK(expanded_by_command("salloc --no-shell -N1 --dependency=expand:12 -J h") == 12);
  CHECK(expanded_by_command("salloc -d expand:12") == 12);
  CHECK(expanded_by_command("salloc --dependency expand:12") == 12);
  CHECK_FALSE(expanded_by_command("sbatch --wrap echo expand:12").has_value());
  CHECK_FALSE(expanded_by_command("").has_value());
}
