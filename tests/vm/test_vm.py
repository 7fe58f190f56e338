"""Slurm 24.11 on a unified cgroup v2 hierarchy, in a guest of its own: what was recorded there,
against what the job says about itself.

One guest for all tests: vm.py makes and boots it, jobs.sh is what it runs.
"""

import contextlib
import json
import re
import signal
import sys
import unittest

import vm
from vm_tools import REPO, missing_tools

sys.path.insert(0, str(REPO / "tests" / "lab"))

from telemetry import MIB, NS_PER_MS, UNCLOSED, Run, read_runs, truths
from test_attribution import SETTLED_NS, allowed_ns, phase_of


def setUpModule():
    missing = missing_tools()
    if missing:
        raise unittest.SkipTest(f"test_vm: cannot be had here: {', '.join(missing)}")


class UnifiedCase(unittest.TestCase):
    """One guest for all classes."""

    maxDiff = None
    guest = None

    @classmethod
    def setUpClass(cls):
        if UnifiedCase.guest is None:
            UnifiedCase.guest = vm.Guest(vm.run_guest())

    def recorded(self, name: str) -> list[Run]:
        """The runs of the job of that name."""
        return read_runs(self.guest.node_db, self.guest.number(f"{name}.job"))

    def run_of(self, name: str) -> Run:
        [run] = self.recorded(name)
        return run

    def truths(self, name: str) -> dict:
        return truths(self.guest.text(f"{name}.out"))

    def report(self, name: str) -> dict:
        """The one start of a job, as `sphase report --json` has it."""
        [start] = json.loads(self.guest.text(f"{name}.json"))["starts"]
        return start

    def row(self, name: str, kind: str, path: str) -> dict:
        [row] = [row for row in self.report(name)["rows"]
                 if (row["kind"], row["path"]) == (kind, path)]
        return row

    def assertCpuTimes(self, runs: list[Run], known: dict, least: int):
        """Every phase of at least 100 ms is right to 1 % or a tick per busy CPU."""
        checked = 0
        for truth in known.values():
            run, phase = phase_of(runs, truth)
            if truth.cpu_ns < SETTLED_NS:
                continue
            checked += 1
            apart = phase["cpu_time_ns"] - truth.cpu_ns
            print(f"{phase['path']}#{phase['number']}: job {truth.cpu_ns / 1e6:.2f} ms,"
                  f" recorded {apart / 1e6:+.2f} ms")
            self.assertLessEqual(abs(apart), allowed_ns(truth, run["tick_ns"]), (truth, phase))
        self.assertGreaterEqual(checked, least)

    def assertPeaks(self, run: Run, known: dict):
        """Every phase held what it allocated, within 2 MiB; the kernel's own mark, set anew at each
        edge (Linux 6.12), says so."""
        for truth in known.values():
            _, phase = phase_of([run], truth)
            apart = phase["memory_peak_bytes"] - truth.memory_bytes
            print(f"{phase['path']}#{phase['number']}: job {truth.memory_bytes / MIB:.0f} MiB,"
                  f" recorded {apart / MIB:+.2f} MiB")
            self.assertLessEqual(abs(apart), 2 * MIB, (truth, phase))
            self.assertEqual(phase["memory_peak_source"], "peak")


class Recorded(UnifiedCase):
    def test_it_is_the_slurm_that_was_meant(self):
        version = self.run_of("phases")["slurm_version"]
        self.assertRegex(version, r"24\.11\.")
        self.assertEqual(self.guest.text("slurm_version").split()[-1], version)

    def test_counters_of_every_run_come_from_the_unified_hierarchy(self):
        for name in ("phases", "memory", "recorded", "cancelled", "script"):
            for run in self.recorded(name):
                self.assertEqual((run["cpu_source"], run["cpu_reason"]),
                                 ("cgroup2 cpu.stat", None))
                self.assertEqual((run["memory_source"], run["memory_reason"]),
                                 ("cgroup2 memory", None))
                self.assertEqual(run["end_reason"], "step ended")

    def test_nothing_was_amiss(self):
        run = self.run_of("phases")
        self.assertEqual((run["markers_dropped"], run["markers_invalid"]), (0, 0))
        # An emulated CPU may be too slow for the 50 ms that slurmstepd waits: no fault, and noted.
        self.assertLessEqual({notice["code"] for notice in run.notices}, {"recorder-slow"})

    def test_cpu_time_of_each_phase_is_the_jobs_own_figure(self):
        self.assertCpuTimes([self.run_of("phases")], self.truths("phases"), least=6)

    def test_peak_memory_of_each_phase_is_what_it_allocated(self):
        self.assertPeaks(self.run_of("phases"), self.truths("phases"))

    def test_the_peak_of_a_phase_is_its_own_after_a_larger_one_and_beside_page_cache(self):
        self.assertPeaks(self.run_of("memory"), self.truths("memory"))

    def test_work_of_a_child_that_marks_nothing_is_its_parents_phase(self):
        run = self.run_of("burn")
        self.assertCpuTimes([run], self.truths("burn"), least=1)
        self.assertEqual(run.phase("burn")["cpu_source"], "cgroup")

    def test_a_forked_child_has_phases_of_its_own(self):
        run = self.run_of("forked")
        self.assertEqual({phase["path"] for phase in run.phases}, {"parent", "child"})
        [truth] = self.truths("forked").values()
        # Its first marker connects to the recorder, inside of the phase and outside of the truth:
        # some milliseconds of an emulated CPU.
        apart = run.phase("child")["cpu_time_ns"] - truth.cpu_ns
        self.assertTrue(0 <= apart <= 20 * NS_PER_MS, (truth, apart))

    def test_phases_of_a_script_hold_those_of_its_steps(self):
        runs = self.recorded("script")
        self.assertEqual([run["step"] for run in runs], ["batch", "0", "1"])
        # Both steps print "setup" or "solve" of task 0, each its own.
        known = self.truths("script")
        stage = {key: known[key] for key in known if key[1] == "setup"}
        solve = {key: known[key] for key in known if key[1] != "setup"}
        self.assertCpuTimes(runs[1:2], stage, least=1)
        self.assertCpuTimes(runs[2:3], solve, least=4)
        for phase, step in (("stage", runs[1]), ("solve", runs[2])):
            self.assertGreaterEqual(self.row("script", "job phase", phase)["cpu_time_ns"],
                                    step.tasks[0]["cpu_time_ns"])

    def test_a_job_killed_for_memory_reached_its_limit(self):
        run = self.run_of("oom")
        self.assertEqual(run.tasks[0]["exit_status"], 9)
        peak = max(sample["memory_peak_bytes"] for sample in run.samples)
        self.assertTrue(98 * MIB <= peak <= 100 * MIB, peak / MIB)
        self.assertEqual(run.phase("solve")["flags"] & UNCLOSED, UNCLOSED)
        self.assertEqual(self.report("oom")["job"]["state"], "OUT_OF_MEMORY")


class Unharmed(UnifiedCase):
    def test_nothing_that_a_user_sees_differs(self):
        for what in ("out", "err", "rc"):
            self.assertEqual(self.guest.text(f"recorded.{what}"), self.guest.text(f"plain.{what}"))
        self.assertEqual(self.guest.number("recorded.rc"), 7)
        self.assertEqual(self.run_of("recorded").tasks[0]["exit_status"], 7 << 8)

    def test_the_recorder_sits_outside_of_the_job(self):
        groups = dict(line.split() for line in self.guest.text("groups.out").splitlines())
        step = f"/job_{self.guest.number('groups.job')}/step_0/"
        self.assertIn(step, groups["job"])
        jobs_own = groups["job"].partition("/step_0/")[0]
        self.assertFalse(f"{groups['recorder']}/".startswith(f"{jobs_own}/"), groups)

    def test_no_recorder_is_left(self):
        self.assertEqual(self.guest.text("recorders_left"), "")

    def test_a_cancelled_job_ends_as_it_would(self):
        self.assertEqual(self.guest.number("cancelled.rc"), 128 + signal.SIGTERM)
        self.assertEqual(self.run_of("cancelled").tasks[0]["exit_status"], signal.SIGTERM)


class Collected(UnifiedCase):
    def test_records_of_this_slurm_are_merged(self):
        merged = json.loads(self.guest.text("merge.json"))
        self.assertEqual((merged["problems"], merged["warnings"]), ([], []))
        job = self.report("phases")["job"]
        self.assertEqual((job["state"], job["state_reason"], job["records"]),
                         ("COMPLETED", "None", "slurmctld"))

    def test_what_this_slurm_tells_no_client_comes_from_the_recorder(self):
        [node] = self.report("phases")["nodes"]
        self.assertEqual((node["cpus"], node["memory_allocated_bytes"]), (2, 600 * MIB))

    def test_the_report_shows_the_phases(self):
        for path in ("setup", "solve", "write"):
            self.assertEqual(self.row("phases", "task phase", path)["cpu_time_ns"],
                             self.run_of("phases").phase(path)["cpu_time_ns"])

    def test_an_oversized_job_asks_for_less_the_second_time(self):
        self.assertIn("nothing was learned about it yet", self.guest.text("oversized1.err"))
        said = re.search(r"memory 550M -> (\d+)M", self.guest.text("oversized2.err"))
        self.assertIsNotNone(said, self.guest.text("oversized2.err"))
        lowered = int(said[1])
        self.assertTrue(50 < lowered < 200, lowered)
        self.assertIn(f"MinMemoryNode={lowered}M", self.guest.text("oversized2.show"))
        self.assertEqual(self.guest.number("oversized2.rc"), 0)
        [node] = self.report("oversized2")["nodes"]
        self.assertEqual(node["memory_allocated_bytes"], lowered * MIB)
        self.assertRegex(self.guest.text("why.txt"), r"memory +550 MiB per node .* changed")


if __name__ == "__main__":
    unittest.main()
