#!/usr/bin/env python3
"""./dev bench store: bytes on disk per sample and marker, and rows per second.

bench/store/rows.cpp stores the rows of a made-up program (what it does: bench/store/program.h) through
the recorder's own store and has them merged; the peer is the same rows unsealed. Then, on a lab cluster:
a real program under telemetry, whose sealed rows are weighed without their share of the file; and the
same program under Slurm's acct_gather_profile/hdf5 with a sample a second, once short and once long, so
that the fixed part of its file is not counted.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, REPO, write_result
from hdf5_lab import HDF5_OPTIONS, hdf5_profile

from lab import Lab, LabError, USERS

SHORT_S, LONG_S = 20, 80
# Works in phases of 10 ms, each half of it on the CPU, for $1 seconds; writes a line in each.
WORK = """
import sys, time
sys.path.insert(0, sys.argv[2])
import sphase
end = time.monotonic() + float(sys.argv[1])
kept = []
with sphase.phase("solve"):
    while time.monotonic() < end:
        with sphase.phase("iterate"):
            spent = time.process_time() + 0.005
            while time.process_time() < spent:
                kept.append(bytes(len(kept) % 5000))
            if len(kept) > 50_000:
                kept.clear()
            time.sleep(0.005)
"""


def rows_figures():
    command = [BUILD / "bench" / "bench_store_rows", *(["--quick"] if QUICK else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def srun(lab, options, seconds):
    folder = lab.dir / "program"
    folder.mkdir(exist_ok=True)
    shutil.copy(REPO / "marker" / "sphase.py", folder)
    lab.run_as(USERS[0], ["srun", "-N1", "-n1", *options, "python3", "-c", WORK, seconds, folder],
               env={"SPHASE_LIB": str(lab.build / "marker" / "libsphase.so")},
               timeout=seconds + 60, check=True)


def sealed_bytes(lab):
    """{table: B per row} of what is sealed in the first node's node.db."""
    with closing(sqlite3.connect(f"file:{lab.node_db(lab.nodes[0])}?mode=ro", uri=True)) as db:
        return dict(db.execute("SELECT source, sum(length(data)) * 1.0 / sum(rows) FROM segment"
                               " GROUP BY source"))


def hdf5_bytes(lab):
    """B per sample of what acct_gather_profile/hdf5 writes about one task."""
    folder = hdf5_profile(lab)
    sizes = {}
    for seconds in (SHORT_S, LONG_S):
        before = set(folder.rglob("*.h5"))
        srun(lab, HDF5_OPTIONS, seconds)
        [written] = set(folder.rglob("*.h5")) - before
        sizes[seconds] = written.stat().st_size
    return (sizes[LONG_S] - sizes[SHORT_S]) / (LONG_S - SHORT_S)


def main():
    figures = rows_figures()
    missing = {}
    lab_keys = ("hdf5_bytes_per_sample", "lab_segment_bytes_per_sample",
                "lab_segment_bytes_per_marker")
    figures.update(dict.fromkeys(lab_keys))
    if QUICK or os.geteuid() != 0:
        missing = dict.fromkeys(lab_keys, "needs a lab cluster: root, and no --quick")
    else:
        with Lab("store", nodes=1) as lab:
            srun(lab, ["--phase-telemetry=period=1s"], LONG_S)
            real = sealed_bytes(lab)
            figures["lab_segment_bytes_per_sample"] = real["sample"]
            figures["lab_segment_bytes_per_marker"] = real["phase"] / 2
            try:
                figures["hdf5_bytes_per_sample"] = hdf5_bytes(lab)
            except (LabError, ValueError) as error:
                missing["hdf5_bytes_per_sample"] = f"{type(error).__name__}: {error}"
    write_result("store", figures, missing,
                 how="bytes_per_sample: 1 Hz, runs of 10 min, 1 h and 6 h, the whole file; "
                     "bytes_per_edge_sample: 20 a second; bytes_per_marker: half a closed phase; "
                     "lab_segment_*: sealed rows of a Python program of 10 ms phases, without the "
                     "pages around them; rows_per_s_write: commits of 1000 rows; rows_per_s_read: "
                     "decoded; rows_per_s_merge: decoded and inserted into cluster.db")


if __name__ == "__main__":
    main()
