#!/usr/bin/env python3
"""./dev bench sample: what a sample of a step costs, and what the recorders of a node cost together.

bench/sample/cost.cpp times one sample with kept descriptors beside open, read and close.
bench/sample/steps.cpp runs 1, 16 and 64 real recorders at 1, 10 and 100 Hz and reads their CPU time.
On a lab cluster the peer: CPU time of slurmstepd under acct_gather_profile/hdf5 at 1 Hz, less that
of a step without it, beside recorder and slurmstepd under --phase-telemetry at 1 Hz.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, write_result
from hdf5_lab import HDF5_OPTIONS, hdf5_profile

from lab import Lab, LabError, USERS, wait_for
from telemetry import recorders, slurmstepds

STEPS = (1, 16, 64)
HERTZ = (1, 10, 100)
ROUNDS, SECONDS, LAB_SECONDS = (50, 3, 8) if QUICK else (300, 10, 30)
RECORDER = BUILD / "spank" / "recorder" / "sphase-recorder"


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def cost_figures():
    lines = run(BUILD / "bench" / "bench_sample_cost", ROUNDS).splitlines()
    figures = {key: float(value) for key, value in map(str.split, lines)}
    figures["sample_ratio"] = figures["sample_us"] / figures["sample_reopen_us"]
    return figures


def steps_figures():
    program = BUILD / "bench" / "bench_sample_steps"
    return {f"cpu_percent_{hz}hz_{steps}steps": float(run(program, RECORDER, steps, 1000 // hz, SECONDS))
            for hz in HERTZ for steps in STEPS}


def cpu_time_s(pid):
    """CPU time of a process. The clock's number: CPUCLOCK_SCHED of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def step_percent(lab, name, *options):
    """CPU percent of slurmstepd, and of the recorder if there is one, while a step sleeps."""
    command = ["srun", "-J", name, *options, "-n1", "sleep", str(LAB_SECONDS + 6)]
    done = lab.popen_as(USERS[0], command)
    job = wait_for(lambda: lab.run(["squeue", "-h", "-t", "R", "-n", name, "-o", "%A"]).stdout.strip(),
                   20, f"job {name} to run")
    [stepd] = wait_for(lambda: slurmstepds(lab, int(job)), 10, f"the slurmstepd of job {job}")
    time.sleep(2)  # its start is another figure
    pids = [stepd, *recorders(RECORDER)]
    before = {pid: cpu_time_s(pid) for pid in pids}
    begun = time.monotonic()
    time.sleep(LAB_SECONDS)
    took = time.monotonic() - begun
    used = sum(cpu_time_s(pid) - before[pid] for pid in pids)
    done.wait(timeout=30)
    return 100 * used / took


def lab_figures():
    with Lab("sample", nodes=1, build=BUILD) as lab:
        hdf5_profile(lab)
        without = step_percent(lab, "without")
        return {"hdf5_cpu_percent_1hz":
                    step_percent(lab, "hdf5", *HDF5_OPTIONS) - without,
                "lab_cpu_percent_1hz":
                    step_percent(lab, "ours", "--phase-telemetry=period=1s") - without}


def main():
    figures = cost_figures() | steps_figures()
    missing = {}
    try:
        figures |= lab_figures()
    except LabError as error:
        figures["hdf5_cpu_percent_1hz"] = None
        missing["hdf5_cpu_percent_1hz"] = str(error)
    write_result("sample", figures, missing,
                 how="cpu_percent_*: CPU time of all recorders of a node, commits to node.db and all")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("bench sample needs root: it makes cgroups and starts a lab")
    main()
