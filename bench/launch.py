#!/usr/bin/env python3
"""./dev bench launch: milliseconds that telemetry adds to the launch of a step.

Pairs of `srun true` without and with --phase-telemetry inside one allocation of a lab cluster, in
alternating order; the figure is the median of the differences. The same for a step on four nodes,
and for the peer, acct_gather_profile/hdf5 with a sample a second.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import QUICK, write_result
from hdf5_lab import HDF5_OPTIONS, hdf5_profile

from lab import Lab, USERS

ON = "--phase-telemetry"
# Runs inside the allocation: prints two columns, ns without and with the option.
PAIRS = """
now() { date +%s%N; }
for i in $(seq {pairs}); do
  if ((i % 2)); then order="off on"; else order="on off"; fi
  for way in $order; do
    option=; [ $way = on ] && option="{option}"
    a=$(now); srun $option {step} true </dev/null; b=$(now)
    [ $way = on ] && on=$((b - a)) || off=$((b - a))
  done
  echo "pair $off $on"
done
"""


def measure(lab, nodes, pairs, option=ON):
    """Medians in ms: (without, added)."""
    script = PAIRS.replace("{pairs}", str(pairs)).replace("{step}", f"-N{nodes} -n{nodes}")
    script = script.replace("{option}", option)
    done = lab.run_as(USERS[0], ["salloc", "-Q", f"-N{nodes}", f"-n{nodes}", "bash", "-c", script],
                      timeout=600, check=True)
    found = [tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines()
             if line.startswith("pair ")]
    without = statistics.median(off for off, on in found) / 1e6
    added = statistics.median(on - off for off, on in found) / 1e6
    return without, added


def main():
    pairs = 12 if QUICK else 50
    with Lab("launch", nodes=4) as lab:
        measure(lab, 1, 3)  # warm
        one, one_added = measure(lab, 1, pairs)
        four, four_added = measure(lab, 4, pairs)
        hdf5_profile(lab)
        hdf5 = " ".join(HDF5_OPTIONS)
        measure(lab, 1, 3, hdf5)
        _, one_hdf5 = measure(lab, 1, pairs, hdf5)
        _, four_hdf5 = measure(lab, 4, pairs, hdf5)
    write_result("launch", {"srun_true_ms": one, "srun_true_added_ms": one_added, "step4_ms": four,
                            "step4_added_ms": four_added, "hdf5_srun_true_added_ms": one_hdf5,
                            "hdf5_step4_added_ms": four_hdf5})


if __name__ == "__main__":
    main()
