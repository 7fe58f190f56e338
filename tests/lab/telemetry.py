"""What the telemetry tests share: a lab per test class, jobs as ordinary users, and what sphase
recorded about them.

    class Attribution(TelemetryCase):
        lab_name = "attribution"

        def test_true(self):
            job = self.srun(["true"], "--phase-telemetry")
            [run] = self.runs(job.id, 1)
            self.assertEqual([sample["kind"] for sample in run.samples], ["start", "end"])
"""

import contextlib
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lab_procs
from lab import REPO, USERS, Lab, LabError, wait_for

U1, U2 = USERS
ON = "--phase-telemetry"

# Bits of phase.flags, common/vocabulary.h.
UNCLOSED, FOLDED, LATE, INTERPOLATED, END_LOST, RECORDER_LOST = 1, 2, 4, 8, 16, 32

NS_PER_MS = 1_000_000
MIB = 1 << 20


def build_dir():
    """The build folder under test: $SPHASE_BUILD (set by ctest), else build/release."""
    return Path(os.environ.get("SPHASE_BUILD") or REPO / "build" / "release")


# --- what was recorded ----------------------------------------------------------------------------

class Run:
    """A row of table `run` with what belongs to it. Columns: run["step"]."""

    TABLES = {"tasks": ("task", "task"), "phases": ("phase", "begin_ns"),
              "samples": ("sample", "time_ns"), "notices": ("notice", "time_ns"),
              "values": ("value", "time_ns"), "attributes": ("attribute", "key"),
              "counters": ("counter", "event")}

    def __init__(self, tables, row):
        self._row = row
        for name, (table, order) in self.TABLES.items():
            rows = [other for other in tables[table] if other["run_id"] == row["run_id"]]
            setattr(self, name, sorted(rows, key=lambda other, order=order: other[order]))

    def __getitem__(self, column):
        return self._row[column]

    def __repr__(self):
        return f"run of {self['job_id']}.{self['step']} on {self['node']}"

    def phase(self, path, number=1, task=0, scope="task"):
        """The one phase of that name, or an AssertionError that says what there is."""
        found = [phase for phase in self.phases
                 if (phase["path"], phase["number"], phase["task"], phase["scope"])
                 == (path, number, task, scope)]
        if len(found) != 1:
            there = [(phase["path"], phase["number"], phase["task"]) for phase in self.phases]
            raise AssertionError(f"no phase {path}#{number} of task {task} in {there}")
        return found[0]

    def sample_near(self, time_ns, most_ns=2 * NS_PER_MS):
        """The sample nearest to a time, as the edge's own sample may serve the next edge too."""
        nearest = min(self.samples, key=lambda sample: abs(sample["time_ns"] - time_ns))
        if abs(nearest["time_ns"] - time_ns) > most_ns:
            raise AssertionError(f"the sample nearest to {time_ns} is {nearest}")
        return nearest


def _rows(db, query, *arguments):
    try:
        cursor = db.execute(query, arguments)
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):  # made, but never written: a full disk
            return []
        raise
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


@contextlib.contextmanager
def _reading(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        yield db
    finally:
        db.close()


def _exported(path, job_id):
    """Rows of a job as `sphase export` tells them, sealed ones too: table -> rows."""
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder) / "cluster.db"
        subprocess.run([build_dir() / "collector" / "sphase-collector", "merge", path,
                        "--no-records", "--db", merged], check=True, capture_output=True)
        tables = {}
        for table in ("run", *(table for table, _ in Run.TABLES.values())):
            done = subprocess.run([build_dir() / "cli" / "sphase", "export", str(job_id), "--table",
                                   table, "--db", merged], check=True, capture_output=True)
            tables[table] = [json.loads(line) for line in done.stdout.splitlines()]
        return tables


def _is_sealed(db, job_id):
    return bool(_rows(db, "SELECT 1 FROM segment JOIN run USING (run_id) WHERE job_id = ? LIMIT 1",
                      job_id))


def read_runs(path, job_id):
    """Every run of a job in one node database."""
    with _reading(path) as db:
        if not _is_sealed(db, job_id):
            tables = {table: _rows(db, f"SELECT {table}.* FROM {table} JOIN run USING (run_id)"
                                   " WHERE run.job_id = ?", job_id)
                      for table, _ in Run.TABLES.values()}
            tables["run"] = _rows(db, "SELECT * FROM run WHERE job_id = ?", job_id)
            return [Run(tables, row) for row in tables["run"]]
    tables = _exported(path, job_id)
    return [Run(tables, row) for row in tables["run"]]


class Store:
    """Reads the node databases and notes of one lab."""

    def __init__(self, lab):
        self.lab = lab

    @property
    def run_dir(self):
        return self.lab.dir / "run-sphase"

    def node_dbs(self):
        """Those that exist, in the order of the nodes."""
        return [path for path in map(self.lab.node_db, self.lab.nodes) if path.is_file()]

    def runs(self, job_id, step=None):
        """Every recorded run of a job, by start and node."""
        found = []
        for path in self.node_dbs():
            found += read_runs(path, job_id)
        return sorted((run for run in found if step in (None, run["step"])),
                      key=lambda run: (run["start_ns"], run["node"]))

    def notes(self):
        """Notes that no database has taken in yet, as dicts."""
        notes = []
        for path in sorted((self.run_dir / "notes").glob("*.note")):
            notes.append(dict(line.split("=", 1) for line in path.read_text().splitlines()))
        return notes

    def notices(self, job_id):
        """(code, text) of every notice and note about a job, wherever it stands."""
        found = []
        for path in self.node_dbs():
            with _reading(path) as db:
                found += [(row["code"], row["text"]) for row in
                          _rows(db, "SELECT * FROM notice WHERE job_id = ?", job_id)]
        return found + [(note["code"], note["text"]) for note in self.notes()
                        if int(note["job_id"]) == job_id]

    def sockets(self):
        return sorted(self.run_dir.glob("s-*"))


# --- the truth ------------------------------------------------------------------------------------

class Truth(NamedTuple):
    """A line of tests/lab/truth.h."""
    task: int  # global
    phase: str
    number: int
    wall_ns: int
    cpu_ns: int
    memory_bytes: int
    written_bytes: int


def truths(stdout):
    """{(global task, phase, number): Truth} from what a program of the lab printed."""
    found = {}
    for line in stdout.splitlines():
        if line.startswith("truth "):
            task, phase, *numbers = line.split()[1:]
            number, *rest = map(int, numbers)
            found[int(task), phase, number] = Truth(int(task), phase, number, *rest)
    return found


# --- processes and daemons ------------------------------------------------------------------------

def recorders(program):
    """Pids of the living recorders that run this very file. A lab with a copy of its own knows
    which ones are its own, whatever else runs on the host."""
    def runs_it(pid):
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") == str(program)
        return False

    return [pid for pid in lab_procs.all_pids() if lab_procs.start_time(pid) and runs_it(pid)]


def slurmstepds(lab, job_id):
    """Pids of the slurmstepd processes of a job in this lab."""
    title = re.compile(rb"slurmstepd: \[%d\." % job_id)
    conf = f"SLURM_CONF={lab.slurm_conf}".encode()
    return [pid for pid in lab_procs.all_pids()
            if title.match(lab_procs.read_proc(pid, "cmdline"))
            and conf in lab_procs.read_proc(pid, "environ").split(b"\0")]


# --- the report -----------------------------------------------------------------------------------

def report_tools(lab):
    """Paths of sphase-collector and sphase in the build; None where they are not built."""
    tools = (lab.build / "collector" / "sphase-collector", lab.build / "cli" / "sphase")
    return tools if all(tool.is_file() for tool in tools) else None


class Report(NamedTuple):
    text: str
    starts: list  # of dicts, as `sphase report --json` has them

    def notices(self):
        """(code, text) of each."""
        return [(notice["code"], notice["text"]) for start in self.starts
                for notice in start["notices"]]

    def row(self, kind, name):
        """The one row of that kind and name in the first start."""
        rows = self.starts[0]["rows"]
        found = [row for row in rows if (row["kind"], row["name"]) == (kind, name)]
        if len(found) != 1:
            raise AssertionError(f"no {kind} {name} in "
                                 f"{[(row['kind'], row['name']) for row in rows]}")
        return found[0]


# --- a test class with a lab ----------------------------------------------------------------------

class Job(NamedTuple):
    id: int
    rc: int
    stdout: str
    stderr: str
    elapsed_s: float


class TelemetryCase(unittest.TestCase):
    """One lab for all tests of the class."""

    lab_name = None
    lab_nodes = 1
    lab_conf = ()
    maxDiff = None
    _numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        build = build_dir()
        if not (build / "spank" / "phase_telemetry.so").is_file():
            raise LabError(f"no plugin in {build}; build it, or set SPHASE_BUILD")
        cls.lab = Lab(cls.lab_name, nodes=cls.lab_nodes, conf=cls.lab_conf, build=build)
        cls.lab.up()
        cls.addClassCleanup(cls.lab.down, purge=True)
        cls.store = Store(cls.lab)

    @classmethod
    def program(cls, name):
        """Path of a program of tests/lab, as users reach it."""
        return cls.lab.build / "tests" / "lab" / name

    def new_name(self):
        """A job name that no other job of the lab has."""
        return f"t{next(self._numbers)}"

    def id_of(self, name):
        """The id of the job with that name; the first one's for a het job."""
        out = self.lab.run(["squeue", "-h", "-t", "all", "-n", name, "-o", "%A"]).stdout.split()
        self.assertTrue(out, f"Slurm knows no job {name}")
        return min(map(int, out))

    def srun(self, command, *options, user=U1, **more):
        """Runs a job of one step to its end."""
        name = self.new_name()
        began = time.monotonic()
        done = self.lab.run_as(user, ["srun", "-J", name, *options, *command], **more)
        elapsed_s = time.monotonic() - began
        return Job(self.id_of(name), *done, elapsed_s)

    def batch(self, script, *options, user=U1, limit_s=60, **more):
        """Submits a script and waits for the job's end. stdout is the job's output."""
        out = self.lab.home(user) / f"{self.new_name()}.out"
        began = time.monotonic()
        job = self.lab.sbatch(user, ["-o", out, *options],
                              input=f"#!/bin/bash\n{script}\n", **more)
        self.lab.wait_job(job, {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"},
                          limit_s)
        return Job(job, 0, out.read_text(), "", time.monotonic() - began)

    def runs(self, job_id, count, step=None, limit_s=15):
        """The job's runs once `count` of them have ended. slurmstepd does not wait for a slow
        disk, so a job may be over a little before its last row is stored."""
        def ended():
            runs = self.store.runs(job_id, step)
            return runs if len(runs) >= count and all(run["end_ns"] for run in runs) else None

        runs = wait_for(ended, limit_s, f"{count} runs of job {job_id} to have an end")
        self.assertEqual(len(runs), count, runs)
        return runs

    def assertNoRun(self, job_id):
        self.assertEqual(self.store.runs(job_id), [])
        self.assertEqual(self.store.notices(job_id), [])

    def codes(self, job_id):
        return sorted({code for code, _ in self.store.notices(job_id)})

    def merge(self):
        """Merges the lab's node databases, notes and records into its cluster.db. Returns what was
        done, as a dict; a file that cannot be used is one of its "problems"."""
        collector, _ = report_tools(self.lab)
        sources = [self.lab.dir / "spool-sphase"]
        if self.store.notes():
            sources.append(self.store.run_dir)
        done = self.lab.run([collector, "merge", *sources, "--db", self.cluster_db, "--json"])
        return json.loads(done.stdout)

    def report(self, job_id, *options):
        """Merges, and reports on a job."""
        self.merge()
        _, sphase = report_tools(self.lab)
        command = [sphase, "report", job_id, "--db", self.cluster_db, *options]
        text = self.lab.run(command, check=True).stdout
        data = self.lab.run([*command, "--json"], check=True).stdout
        return Report(text, json.loads(data)["starts"])

    @property
    def cluster_db(self):
        return self.lab.dir / "cluster.db"
