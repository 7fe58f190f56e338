#!/usr/bin/env python3
"""./dev demo: an ordinary user's jobs on a real lab cluster, from srun to the phase table.

Brings a lab of four nodes up (or uses the one that is up), runs
  (a) one step on four nodes whose program marks three phases of different shape, and
  (b) a batch script with shell markers, two inner sruns and a Python step,
merges what the nodes recorded with Slurm's own records, and prints both reports. The program also
measures itself; its own figures stand beside the recorded ones. Then
  (c) a script that asks for too much is submitted six times with --phase-resize=apply, while
`sphase-collector watch` learns; nobody touches anything, and the sixth asks for what it needs.
The database stays.
"""

import argparse
import re
import shutil
import signal
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab import Lab, LabError, REPO, USERS, wait_for

JOB_SCRIPT = """#!/bin/bash
#SBATCH --job-name=pipeline --nodes=4 --ntasks-per-node=1 --cpus-per-task=2 --mem=1000 --time=5
sphase begin stage
srun -N1 -n1 {workload} -s 600 -c 0 -w 64 -d "$HOME"
sphase end stage

sphase run solve -- srun -N4 -n4 {workload} -s 0 -c 1500 -t 2 -m 200 -w 0

sphase begin post
{python} - <<'PY'
import sphase
with sphase.phase("load", rows="200000"):
    rows = [(i * 7919) % 104729 for i in range(200000)]
with sphase.phase("sort"):
    rows.sort()
sphase.value("median", rows[len(rows) // 2])
PY
sphase end post
"""

OVERSIZED_SCRIPT = """#!/bin/bash
#SBATCH --job-name=oversized --nodes=4 --mem=1500 --time=30
{workload} -s 500 -c 1500 -t 2 -m 200 -w 0
"""
TURNS = 6


def say(text):
    print(f"\n==> {text}", flush=True)


def public_folder(lab):
    """A folder where ordinary users reach the demo's program, libsphase.so and sphase.py."""
    folder = lab.dir / "demo"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    built = REPO / "build" / "release"
    for source in (built / "tests" / "lab" / "workload", REPO / "marker" / "sphase.py"):
        shutil.copy(source, folder)
    shutil.copy(built / "marker" / "libsphase.so.1", folder / "libsphase.so")
    for file in folder.iterdir():
        file.chmod(0o755)
    return folder


def run_step(lab, workload):
    """(a): returns the job id and the program's own figures."""
    command = ["srun", "--phase-telemetry", "--job-name=threephases", "-N4", "-n4", "-c2",
               "--mem=1000", workload, "-s", "1000", "-c", "1500", "-t", "2", "-m", "256", "-w",
               "64", "-d", lab.home(USERS[0])]
    say("as user " + USERS[0] + ": " + " ".join(map(str, command)))
    done = lab.run_as(USERS[0], ["bash", "-c", 'exec "$@" </dev/null', "-", *command])
    if done.rc:
        raise LabError(f"srun ended with {done.rc}: {done.stderr}")
    jobs = lab.run(["squeue", "-h", "-t", "all", "-o", "%A", "-n", "threephases"]).stdout.split()
    return max(map(int, jobs)), done.stdout


def run_script(lab, folder):
    """(b): returns the job id."""
    script = JOB_SCRIPT.format(workload=folder / "workload", python="/usr/bin/python3")
    say("as user " + USERS[0] + ": sbatch --phase-telemetry=profile=pipeline <<'END'")
    print(script, end="")
    job = lab.sbatch(USERS[0], ["--phase-telemetry=profile=pipeline", "--output=pipeline-%j.out"],
                     input=script, env={"PYTHONPATH": str(folder),
                                        "SPHASE_LIB": str(folder / "libsphase.so")})
    return job


def finish(lab, job):
    """Waits for the end of a job, and of its recorders: they have stored before Slurm is done."""
    state = lab.wait_job(job, {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}, limit_s=120)
    if state != "COMPLETED":
        raise LabError(f"job {job} is {state}; see {lab.home(USERS[0])}/pipeline-{job}.out")


def merge(lab, database):
    sources = [lab.dir / "spool-sphase"]
    if (lab.dir / "run-sphase" / "notes").is_dir():  # only where something went wrong
        sources.append(lab.dir / "run-sphase")
    command = [lab.build / "collector" / "sphase-collector", "merge", *sources, "--db", database]
    say(" ".join(map(str, command)))
    done = lab.run(command)
    print(done.stdout + done.stderr, end="")
    if done.rc:
        raise LabError(f"merge ended with {done.rc}")


def show(lab, *words):
    command = [lab.build / "cli" / "sphase", *words]
    say(" ".join(map(str, command)))
    done = lab.run(command)
    print(done.stdout + done.stderr, end="")
    if done.rc:
        raise LabError(f"sphase {words[0]} ended with {done.rc}")


def report(lab, database, job):
    show(lab, "report", job, "--db", database)


def new_database(name):
    """Path of a database that stays after the demo."""
    path = REPO / "build" / "demo" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def learned(database, job):
    if not database.exists():
        return None
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return db.execute("SELECT 1 FROM observed_job WHERE job_id = ?", (job,)).fetchone()
    except sqlite3.OperationalError:  # being made just now
        return None
    finally:
        db.close()


def hands_off(lab, folder):
    """(c): returns the last job and the database."""
    database = new_database("learned.db")
    plugstack = (lab.dir / "etc" / "plugstack.conf").read_text()
    lab.set_plugstack(plugstack.replace("default=off", "default=on"))
    command = [lab.build / "collector" / "sphase-collector", "watch", lab.dir / "spool-sphase",
               "--db", database, "--interval", "1s", "--records-interval", "1s"]
    say("the site: telemetry for every job (default=on), and " + " ".join(map(str, command)))
    watch = lab.popen_as(None, command)
    try:
        script = OVERSIZED_SCRIPT.format(workload=folder / "workload")
        say(f"as user {USERS[0]}, {TURNS} times: sbatch --phase-resize=apply <<'END'")
        print(script)
        jobs = []
        for _ in range(TURNS):
            done = lab.run_as(USERS[0], ["sbatch", "--phase-resize=apply", "--output=%x-%j.out"],
                              input=script, check=True)
            print((done.stderr + done.stdout).strip(), flush=True)
            jobs.append(int(done.stdout.split()[-1]))
            finish(lab, jobs[-1])
            wait_for(lambda: learned(database, jobs[-1]), 30, f"job {jobs[-1]} to be learned")
        report(lab, database, jobs[0])
        report(lab, database, jobs[-1])
        show(lab, "why", jobs[-1], "--db", database)
    finally:
        watch.send_signal(signal.SIGTERM)
        watch.wait()
        lab.set_plugstack(plugstack)
    return jobs[-1], database


def print_truth(output):
    """What the program said about itself, summed over its four tasks."""
    phases = {}
    for line in output.splitlines():
        found = re.fullmatch(r"truth (\d+) (\w+) (\d+) (\d+) (\d+) (\d+) (\d+)", line)
        if not found:
            continue
        cpu, memory = int(found[5]), int(found[6])
        total = phases.setdefault(found[2], [0, 0])
        total[0] += cpu
        total[1] = max(total[1], memory)
    print("\nThe program's own figures (CPU time of its four tasks together, memory of each):")
    for name, (cpu, memory) in phases.items():
        print(f"  {name:8} {cpu / 1e9:8.3f} s CPU   {memory / 2**20:6.0f} MiB")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="demo", help="name of the lab (default demo)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    return parser.parse_args()


def main():
    options = arguments()
    begun = time.monotonic()
    lab = Lab(options.name)
    say(f"a private Slurm cluster of 4 nodes in {lab.dir}")
    lab.up()
    try:
        folder = public_folder(lab)
        step_job, output = run_step(lab, folder / "workload")
        script_job = run_script(lab, folder)
        finish(lab, step_job)
        finish(lab, script_job)
        database = new_database("cluster.db")
        merge(lab, database)
        report(lab, database, step_job)
        print_truth(output)
        report(lab, database, script_job)
        last_job, learned_db = hands_off(lab, folder)
    finally:
        if not options.keep:
            lab.down()
    say(f"done in {time.monotonic() - begun:.0f} s. The databases stay; look again with\n"
        f"    build/release/cli/sphase report {script_job} --nodes --db {database}\n"
        f"    build/release/cli/sphase why {last_job} --db {learned_db}\n"
        f"    build/release/cli/sphase profile list --db {learned_db}")
    if options.keep:
        print(f"The lab is up: ./dev lab sh --name {options.name} --user u1; and then ./dev lab "
              f"down --name {options.name}")
    else:
        print(f"The lab is down; its logs and node databases stay in {lab.dir}.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"demo: {error}")
