#!/usr/bin/env python3
"""./dev bench edges: how far the CPU time of a phase is from the truth, beside interpolation.

One single-threaded program marks phases of 1, 10, 100 and 1000 ms of CPU time while every core is
busy with other programs, and measures itself. Its figures are compared with what sphase recorded,
and with what a node agent can say that looks at the step's CPU time once a second and interpolates
(the "tick" samples of the same run).
"""

import bisect
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, percentile, write_result

from lab import Lab, USERS, wait_for
from telemetry import Store, truths

LENGTHS_MS = (1, 10, 100, 1000)
COUNT = 60


def busy_cores():
    """One process per core that does nothing but work."""
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count())]


def record(lab, count):
    """(what the program says of itself, its run as recorded)"""
    done = lab.run_as(USERS[0], ["srun", "--phase-telemetry=period=1s", "-n1", "-c1", "--mem=500",
                                 "-J", "edges", BUILD / "bench" / "bench_edges_phases", count],
                      timeout=900, check=True)
    job = int(lab.run(["squeue", "-h", "-t", "all", "-n", "edges", "-o", "%A"]).stdout.split()[0])
    store = Store(lab)
    [run] = wait_for(lambda: [run for run in store.runs(job) if run["end_ns"]], 15,
                     "the run to be stored")
    return truths(done.stdout), run


def interpolate(ticks, time_ns):
    """CPU time of the step at a time, from samples a second apart."""
    at = bisect.bisect_left(ticks, (time_ns,))
    if at == 0 or at == len(ticks):
        return None
    (t0, c0), (t1, c1) = ticks[at - 1], ticks[at]
    return c0 + (c1 - c0) * (time_ns - t0) / (t1 - t0)


def errors(truth, run):
    """{length: ([% error of sphase], [% error of interpolation])}"""
    ticks = sorted((sample["time_ns"], sample["cpu_time_ns"]) for sample in run.samples
                   if sample["kind"] in ("start", "tick", "end"))
    found = {length: ([], []) for length in LENGTHS_MS}
    for phase in run.phases:
        one = truth.get((0, phase["path"], phase["number"]))
        if one is None or phase["cpu_time_ns"] is None:
            continue
        ours, theirs = found[int(phase["path"][1:])]
        ours.append(abs(phase["cpu_time_ns"] - one.cpu_ns) / one.cpu_ns * 100)
        begin, end = (interpolate(ticks, phase[key]) for key in ("begin_ns", "end_ns"))
        if begin is not None and end is not None:
            theirs.append(abs(end - begin - one.cpu_ns) / one.cpu_ns * 100)
    return found


def figures_of(found, run):
    figures = {}
    for length, (ours, theirs) in found.items():
        for key, values in (("cpu", ours), ("interpolated", theirs)):
            name = f"{key}_error_{length}ms"
            figures[f"{name}_percent"] = statistics.median(values) if values else None
            figures[f"{name}_p95_percent"] = percentile(values, 0.95) if values else None
        figures[f"phases_{length}ms"] = len(ours)
    figures["edge_lag_p50_us"] = run["edge_lag_p50_ns"] / 1000
    figures["edge_lag_p99_us"] = run["edge_lag_p99_ns"] / 1000
    return figures


def main():
    count = 10 if QUICK else COUNT
    others = busy_cores()
    try:
        with Lab("edges", nodes=1, build=BUILD) as lab:
            truth, run = record(lab, count)
            figures = figures_of(errors(truth, run), run)
    finally:
        for other in others:
            other.kill()
            other.wait()
    write_result("edges", figures, {key: "no sample on both sides"
                                    for key, value in figures.items() if value is None})


if __name__ == "__main__":
    main()
