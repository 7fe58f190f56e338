#include "job_submit/script_scan.h"

#include <doctest/doctest.h>

#include <string>

using sphase::scan_script;

TEST_CASE("sizes that a script gives to srun or mpirun are seen") {
  for (const char* script :
       {"srun -N2 ./a", "srun -n 4 ./a", "srun --ntasks=4 ./a", "srun --mem 100 ./a",
        "srun --label -c2 ./a", "srun -l -J name -N 1 ./a", "/usr/bin/srun -n1 ./a",
        "x=1 srun \\\n  --nodes=2 ./a", "date; srun -n2 ./a", "mpirun -np 4 ./a",
        "mpiexec -n 2 ./a", "sphase run solve -- srun -N2 ./a", "if true; then srun -n1 a; fi",
        "out=$(srun -n1 hostname)", "srun -w n1 ./a", "srun --mem-per-cpu=10 ./a"}) {
    CAPTURE(std::string(script));
    CHECK(scan_script(script).explicit_sizes);
  }
}

TEST_CASE("a program's own arguments, comments and other commands are no sizes") {
  for (const char* script :
       {"", "srun ./a -n 4", "srun ./solver --nodes 7", "# srun -n 4 ./a", "  # srun -n4",
        "srun --label ./a", "srun -J name ./a -N 2", "srun -l ./a", "srun --mpi pmi2 ./a -n 3",
        "head -n 4 file", "mysrun -n 4", "srun", "srun -- ./a -n 2", "mpirun ./a",
        "srun ./a\nhead -n 3 f", "srun ./a; head -n 3 f", "srun --phase-telemetry ./a -n2"}) {
    CAPTURE(std::string(script));
    CHECK_FALSE(scan_script(script).explicit_sizes);
  }
}

TEST_CASE("a script that resizes itself says so with --nodes at begin or run") {
  for (const char* script :
       {"sphase begin solve --nodes 4", "sphase begin --nodes=4 solve",
        "sphase run solve --nodes 4 -- srun ./a", "eval $(sphase begin solve --nodes 2)"}) {
    CAPTURE(std::string(script));
    CHECK(scan_script(script).resizes_itself);
  }
  for (const char* script :
       {"sphase begin solve", "sphase run solve -- ./a --nodes 4", "sphase report --nodes 1",
        "# sphase begin solve --nodes 4", "sphase end; ./a --nodes 3", "sphase"}) {
    CAPTURE(std::string(script));
    CHECK_FALSE(scan_script(script).resizes_itself);
  }
}

TEST_CASE("only the first 64 KiB are looked at") {
  std::string script(70'000, 'x');
  script += "\nsrun -n 4 ./a\n";
  CHECK_FALSE(scan_script(script).explicit_sizes);
  script.insert(10, "\nsrun -n 4 ./a\n");
  CHECK(scan_script(script).explicit_sizes);
}
