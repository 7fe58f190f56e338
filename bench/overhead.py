#!/usr/bin/env python3
"""./dev bench overhead: how much slower a program becomes under telemetry, in percent.

A memory-bound and a compute-bound program of a fixed amount of work run as steps of one allocation on
a lab cluster: without telemetry, at 1 Hz, at 10 Hz, and at 1 Hz with 1000 markers a second, in random
turn. Each configuration is paired with the run without telemetry of the same round; the figure is the
median of the ratios. The programs time themselves, so that the launch is not in it (bench launch).
"""

import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, write_result

from lab import Lab, USERS

ROUNDS = 2000  # of about 1 ms
PAIRS = 25
# Option of srun, and whether the program marks: a begin or an end in each round, so 1000 a second.
WAYS = {"none": (None, 0), "1hz": ("--phase-telemetry=period=1s", 0),
        "10hz": ("--phase-telemetry=period=100ms", 0),
        "1000markers": ("--phase-telemetry=period=1s", 1)}
KINDS = ("memory", "compute")


def one_round(rng):
    """Each configuration once, in random order."""
    turns = [(kind, way) for kind in KINDS for way in WAYS]
    rng.shuffle(turns)
    return turns


def measure(lab, pairs, rounds):
    rng = random.Random(1)
    turns = [turn for _ in range(pairs) for turn in one_round(rng)]
    program = BUILD / "bench" / "bench_overhead_work"
    lines = []
    for kind, way in turns:
        option, markers = WAYS[way]
        lines.append(f"srun -Q {option or ''} -n1 {program} {kind} {rounds} {markers} </dev/null")
    done = lab.run_as(USERS[0], ["salloc", "-Q", "-N1", "-n1", "--mem=500", "bash", "-e", "-c",
                                 "\n".join(lines)], timeout=1800, check=True)
    took = [float(line.split()[1]) for line in done.stdout.splitlines()
            if line.startswith("took_ms ")]
    return list(zip(turns, took))


def figures_of(results):
    per_pair = len(WAYS) * len(KINDS)
    ratios = {}
    for begin in range(0, len(results), per_pair):
        pair = dict(results[begin:begin + per_pair])
        for (kind, way), ms in pair.items():
            if way != "none":
                ratios.setdefault((kind, way), []).append(ms / pair[kind, "none"] * 100 - 100)
    return {f"{kind}_bound_{way}_percent": statistics.median(values)
            for (kind, way), values in sorted(ratios.items())}


def main():
    with Lab("overhead", nodes=1, build=BUILD) as lab:
        measure(lab, 1, 100)  # warm
        figures = figures_of(measure(lab, 3 if QUICK else PAIRS, 500 if QUICK else ROUNDS))
    write_result("overhead", figures)


if __name__ == "__main__":
    main()
