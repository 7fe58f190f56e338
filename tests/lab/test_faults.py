"""Whatever fails on our side, the job does not change, nothing of ours stays behind, and the reason
is named. Each test breaks one thing and runs the same job with and without --phase-telemetry."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import unittest
from typing import NamedTuple

import lab_cgroups
import lab_procs
from lab import wait_for
from telemetry import (ON, U1, TelemetryCase, recorders, slurmstepds)

SLOWER_AT_MOST_S = 1.5  # slurmstepd may wait 50 + 50 + 250 ms for us; the rest is the busy host
KEEP_WAITING = "keep waiting"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY")


class Outcome(NamedTuple):
    """What a user and the accounting see of a job."""
    rc: int
    stdout: str
    stderr: str
    accounting: list


def same_for_all_jobs(stderr):
    """What a job and Slurm said, without ids and times, without the wait for a node that an earlier
    job still holds, and in one order, since several processes said it."""
    text = re.sub(r"(StepId=|JobId=|[Jj]ob |STEP )\d+", r"\1N", stderr)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
    waits = re.compile(r"srun: job N (queued and waiting for|has been allocated) resources")
    return "\n".join(sorted(line for line in text.splitlines() if not waits.fullmatch(line)))


class FaultCase(TelemetryCase):
    lab_nodes = 4
    lab_conf = ["UnkillableStepTimeout=20"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = cls.lab.nodes[0]
        cls.spool = cls.lab.dir / "spool-sphase"
        cls.recorder = cls.lab.dir / "libexec" / "sphase-recorder"
        cls.recorder.parent.mkdir(mode=0o755)
        cls.plugstack = re.sub(r"recorder=\S+", f"recorder={cls.recorder}",
                               cls.lab.plugstack_text())

    def setUp(self):
        """Every test starts with a working installation and no history."""
        shutil.copy(self.lab.build / "spank" / "recorder" / "sphase-recorder", self.recorder)
        self.lab.set_plugstack(self.plugstack)
        for folder in (self.spool, self.store.run_dir):
            folder.mkdir(exist_ok=True)
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.addCleanup(self.end_recorders)

    def end_recorders(self):
        for pid in recorders(self.recorder):
            os.kill(pid, signal.SIGKILL)

    # --- running the job ----------------------------------------------------------------------

    def accounting_of(self, job_id, like):
        """State and exit code of the job and its step, once slurmdbd has both and they have been
        `like` this, or the same for a second: where it hears of the job's end first, it shows
        another end of the step for a moment."""
        since = [None, 0.0]

        def ended():
            out = self.lab.run(["sacct", "-j", job_id, "-n", "-P", "-o",
                                "JobID,State,ExitCode"]).stdout
            lines = re.sub(rf"^{job_id}", "JOB", out, flags=re.MULTILINE).splitlines()
            if len(lines) < 2 or not all(line.split("|")[1].split()[0] in ENDED for line in lines):
                return None
            if lines != since[0]:
                since[:] = lines, time.monotonic()
            patience_s = 0 if lines == like else 1
            return lines if time.monotonic() - since[1] >= patience_s else None

        return wait_for(ended, 40, f"the accounting of job {job_id}", 0.1)

    def one_way(self, options, inject, code, srun, like=None):
        """Runs the gate program to its end. `inject(job id)` is called while it waits inside; if
        that returns KEEP_WAITING, the program is not told to go on."""
        name = self.new_name()
        home = self.lab.home(U1)
        ready, go = home / f"{name}.ready", home / f"{name}.go"
        began = time.monotonic()
        child = self.lab.popen_as(
            U1, ["srun", "-J", name, "-w", self.node, *srun, *options, self.program("shapes"),
                 "gate", ready, go, code],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        with child:
            try:
                wait_for(ready.exists, 20, f"{name} to run")
                job_id = self.id_of(name)
                if inject(job_id) is not KEEP_WAITING:
                    go.touch()
                out, err = child.communicate(timeout=60)
            finally:
                child.kill()
        elapsed_s = time.monotonic() - began
        return job_id, elapsed_s, Outcome(child.returncode, out, same_for_all_jobs(err),
                                          self.accounting_of(job_id, like))

    def both_ways(self, inject=lambda job_id: None, code=0, srun=()):
        """Runs it without and with telemetry and returns the second job's id. Fails unless both
        look the same and nothing of ours is left."""
        without_id, before_s, before = self.one_way([], inject, code, srun)
        job_id, after_s, after = self.one_way([ON], inject, code, srun, before.accounting)
        self.assertEqual(after, before)
        self.assertLess(after_s, before_s + SLOWER_AT_MOST_S)
        self.assertNothingLeft(job_id, without_id)
        return job_id

    def groups_of(self, job_id):
        """The cgroups of a job, without its id."""
        return {str(path).replace(f"job_{job_id}", "job_N") for tree in
                lab_cgroups.trees(self.lab.nodes) for path in tree.rglob(f"job_{job_id}")}

    def assertNothingLeft(self, job_id, without_id):
        """No process, no socket, and no more cgroups than the job without telemetry left."""
        wait_for(lambda: not recorders(self.recorder), 12, "the recorders to end", 0.1)
        self.assertEqual(self.store.sockets(), [], "sockets of steps that are over")
        wait_for(lambda: self.groups_of(job_id) <= self.groups_of(without_id), 10,
                 f"the cgroups of job {job_id} to go", 0.1)

    # --- what is said about it ----------------------------------------------------------------

    def assertNamed(self, job_id, code, pattern):
        """A notice or note of the job has this code and a text like this."""
        def said():
            return [text for found, text in self.store.notices(job_id)
                    if found == code and re.search(pattern, text)]

        try:
            wait_for(said, 15, f"a notice {code} like {pattern!r}")
        except Exception as error:
            raise AssertionError(f"{error}; there are {self.store.notices(job_id)}") from None
        told = self.report(job_id).notices()
        self.assertTrue([text for found, text in told
                         if found == code and re.search(pattern, text)], told)

    def assertSilent(self, job_id):
        self.assertEqual(self.store.notices(job_id), [])

    def recorder_of(self, job_id):
        """The living recorder while one job runs; None for a job without."""
        pids = recorders(self.recorder)
        self.assertLessEqual(len(pids), 1, job_id)
        return pids[0] if pids else None

    @contextlib.contextmanager
    def mounted(self, path, *arguments):
        subprocess.run(["mount", *map(str, arguments), str(path)], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(path)], check=True)

    @contextlib.contextmanager
    def read_only(self, path):
        with self.mounted(path, "--bind", path):
            subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
            yield

    def kept_db(self):
        """A node.db with a run in it, as an earlier job left it."""
        job = self.srun(["true"], ON, "-w", self.node)
        self.runs(job.id, 1)
        wait_for(lambda: not recorders(self.recorder), 10, "the recorder to end")
        return self.lab.node_db(self.node)


class NoFault(FaultCase):
    lab_name = "nofault"
    lab_nodes = 1

    def test_exit_codes_and_signals_pass_through(self):
        for code in (0, 7, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV):
            with self.subTest(code=code):
                job = self.both_ways(code=code)
                [run] = self.runs(job, 1)
                self.assertEqual(run.tasks[0]["exit_status"], code << 8 if code >= 0 else -code)
                self.assertEqual(run["end_reason"], "step ended")
                self.assertEqual({phase["flags"] for phase in run.phases}, {0})
                self.assertSilent(job)

    def test_a_cancelled_job_is_recorded_to_its_end(self):
        def inject(job_id):
            self.lab.run(["scancel", job_id], check=True)
            return KEEP_WAITING

        job = self.both_ways(inject)
        [run] = self.runs(job, 1)
        self.assertEqual(run["end_reason"], "step ended")
        self.assertEqual([(phase["path"], phase["flags"]) for phase in run.phases
                          if phase["flags"]], [("during", 1)])


class Faults(FaultCase):
    lab_name = "faults"

    # --- the recorder -------------------------------------------------------------------------

    def test_recorder_missing(self):
        self.recorder.unlink()
        job = self.both_ways()
        self.assertNamed(job, "not-active", "sphase-recorder.*No such file")

    def test_recorder_not_executable(self):
        self.recorder.chmod(0o644)
        job = self.both_ways()
        self.assertNamed(job, "not-active", "sphase-recorder.*Permission denied")

    def test_recorder_is_no_program(self):
        self.recorder.write_bytes(b"\x7fELF" + os.urandom(4096))
        job = self.both_ways()
        self.assertNamed(job, "not-active", "sphase-recorder.*Exec format error")

    def test_recorder_ends_at_once(self):
        shutil.copy("/bin/true", self.recorder)
        job = self.both_ways()
        self.assertTrue({"not-active", "recorder-lost"} & set(self.codes(job)), self.codes(job))

    def signal_recorder(self, number):
        def inject(job_id):
            pid = self.recorder_of(job_id)
            if pid:
                # Its first rows are in node.db a tenth of a second after its start.
                wait_for(lambda: self.store.runs(job_id), 10, "the run to be stored")
                os.kill(pid, number)
        return inject

    def test_recorder_killed(self):
        job = self.both_ways(self.signal_recorder(signal.SIGKILL))
        self.assertNamed(job, "recorder-lost", "ended before its step")
        [run] = self.store.runs(job)
        self.assertIsNone(run["end_ns"])
        self.assertEqual(run.phase("before")["flags"], 0)

    def test_recorder_stopped(self):
        job = self.both_ways(self.signal_recorder(signal.SIGSTOP))
        self.assertNamed(job, "recorder-slow", "did not answer")
        [run] = self.store.runs(job)
        self.assertIsNone(run["end_ns"])

    # --- node.db ------------------------------------------------------------------------------

    def test_spool_folder_missing_is_made_again(self):
        shutil.rmtree(self.spool)
        job = self.both_ways()
        self.runs(job, 1)
        self.assertSilent(job)

    def test_spool_folder_that_cannot_be_made(self):
        self.lab.set_plugstack(re.sub(r"node_db=\S+", "node_db=/nowhere/at/all/%n/node.db",
                                      self.plugstack))
        job = self.both_ways()
        self.assertNamed(job, "store-failed", "/nowhere/at/all.*No such file")

    def test_spool_folder_read_only(self):
        self.kept_db()
        with self.read_only(self.spool):
            job = self.both_ways()
        self.assertNamed(job, "store-failed", "(?i)read-only|readonly")

    def test_spool_folder_full(self):
        folder = self.spool / self.node
        folder.mkdir(mode=0o700)
        with self.mounted(folder, "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs"):
            with contextlib.suppress(OSError), open(folder / "ballast", "wb", 0) as ballast:
                while True:
                    ballast.write(b"x" * 4096)
            job = self.both_ways()
            self.assertNamed(job, "store-failed", "(?i)full|no space|i/o error")

    def test_node_db_damaged_is_set_aside(self):
        db = self.kept_db()
        db.write_bytes(os.urandom(db.stat().st_size))
        job = self.both_ways()
        self.runs(job, 1)
        self.assertNamed(job, "store-replaced", r"node\.db\.damaged-\d+")
        self.assertEqual(len(list(db.parent.glob("node.db.damaged-*[0-9]"))), 1)

    def test_node_db_of_a_newer_version_is_set_aside(self):
        db = self.kept_db()
        with contextlib.closing(sqlite3.connect(db)) as newer:
            newer.execute("PRAGMA user_version = 999")
        job = self.both_ways()
        self.runs(job, 1)
        self.assertNamed(job, "store-replaced", r"version is 999.*node\.db\.newer-\d+")

    def test_node_db_locked_for_five_seconds_is_written_afterwards(self):
        """By somebody else, from the middle of the job on. The job does not wait for it."""
        db = self.kept_db()

        def inject(job_id):
            if not self.recorder_of(job_id):
                return
            holder = sqlite3.connect(db, isolation_level=None, check_same_thread=False)
            holder.execute("BEGIN IMMEDIATE")
            release = threading.Timer(5, holder.close)
            release.start()
            self.addCleanup(release.join)

        job = self.both_ways(inject)
        [run] = self.runs(job, 1)
        self.assertEqual(run["end_reason"], "step ended")
        self.assertEqual({phase["flags"] for phase in run.phases}, {0})

    # --- around it ----------------------------------------------------------------------------

    def test_run_dir_read_only(self):
        with self.read_only(self.store.run_dir):
            job = self.both_ways()
        self.assertNamed(job, "source", "cannot mark phases.*Read-only file system")
        [run] = self.runs(job, 1)
        self.assertEqual(run.phases, [])
        self.assertEqual([run.samples[0]["kind"], run.samples[-1]["kind"]], ["start", "end"])

    def test_few_descriptors(self):
        self.addCleanup(self.lab.slurmd_restart, self.node)
        self.lab.slurmd_restart(self.node, ["prlimit", "--nofile=20:20"])
        job = self.both_ways()
        self.assertNamed(job, "not-active", "may open only 20 files")

    def test_slurmstepd_killed(self):
        def inject(job_id):
            if self.recorder_of(job_id):
                wait_for(lambda: self.store.runs(job_id), 10, "the run to be stored")
            for pid in slurmstepds(self.lab, job_id):
                os.kill(pid, signal.SIGKILL)
            self.end_job(job_id)
            self.lab.run(["scancel", job_id], check=True)
            return KEEP_WAITING

        job = self.both_ways(inject)
        [run] = self.runs(job, 1)
        self.assertEqual(run["end_reason"], "slurmstepd vanished")

    def end_job(self, job_id):
        """Its tasks have nobody left who would end them."""
        for tree in lab_cgroups.trees([self.node]):
            for group in tree.rglob(f"job_{job_id}"):
                for pid in lab_cgroups.pids_in(group):
                    started = lab_procs.start_time(pid)
                    if started:
                        lab_procs.end_process(pid, started, limit_s=0)

    def test_garbage_in_plugstack_conf_leaves_the_defaults_and_is_named(self):
        self.lab.set_plugstack(self.plugstack.rstrip() + " period=banana max_bytes=-1 what \n")
        job = self.both_ways()
        [run] = self.runs(job, 1)
        self.assertEqual(run["period_ns"], 1_000_000_000)
        self.assertNamed(job, "config", '"period=banana" is ignored')
        self.assertNamed(job, "config", '"max_bytes=-1" is ignored')
        self.assertNamed(job, "config", 'unknown argument "what"')

    def test_plugin_missing_on_one_of_four_nodes(self):
        """That node has a plugin of its own: none."""
        missing = self.lab.nodes[2]
        plugin = self.lab.dir / "plugin" / "phase_telemetry.so"
        plugin.parent.mkdir(exist_ok=True)
        shutil.copy(self.lab.build / "spank" / "phase_telemetry.so", plugin)
        self.lab.set_plugstack(re.sub(r"^optional \S+", f"optional {plugin}", self.plugstack,
                                      flags=re.MULTILINE))
        empty = self.lab.dir / "empty"
        empty.mkdir(exist_ok=True)
        self.addCleanup(self.lab.slurmd_restart, missing)
        self.lab.slurmd_restart(
            missing,
            # In a chroot "/" is no mount point, and its propagation cannot be changed.
            ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
             "mount --make-rprivate / 2>/dev/null || :; "
             f'mount --bind {empty} {plugin.parent}; exec "$@"', "sh"])
        job = self.both_ways(srun=["-N4", "-w", ",".join(self.lab.nodes)])
        runs = self.runs(job, 3)
        self.assertEqual([run["node"] for run in sorted(runs, key=lambda run: run["node_index"])],
                         [node for node in self.lab.nodes if node != missing])
        self.assertEqual({run["step_nodes"] for run in runs}, {4})
        [start] = self.report(job).starts
        self.assertIn(missing, " ".join(start["missing"]))


if __name__ == "__main__":
    unittest.main()
