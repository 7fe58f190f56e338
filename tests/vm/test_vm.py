"""Slurm 24.11 on a unified cgroup v2 hierarchy, in a guest of its own: what was recorded there,
against what the job says about itself.

One guest for all tests: vm.py makes and boots it, jobs.sh is what it runs.
"""

import contextlib
import json
import sys
import unittest

import vm
from vm_tools import REPO, missing_tools

sys.path.insert(0, str(REPO / "tests" / "lab"))

from telemetry import MIB, Run, read_runs, truths
from test_attribution import SETTLED_NS, allowed_ns, phase_of


def setUpModule():
    missing = missing_tools()
    if missing:
        raise unittest.SkipTest(f"test_vm: cannot be had here: {', '.join(missing)}")


class Guest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.guest = vm.Guest(vm.run_guest())

    def recorded(self, name: str) -> Run:
        """The one run of the job of that name."""
        [run] = read_runs(self.guest.node_db, self.guest.number(f"{name}.job"))
        return run

    def test_it_is_the_slurm_that_was_meant(self):
        version = self.recorded("phases")["slurm_version"]
        self.assertRegex(version, r"24\.11\.")
        self.assertEqual(self.guest.text("slurm_version").split()[-1], version)

    def test_counters_come_from_the_unified_hierarchy(self):
        run = self.recorded("phases")
        self.assertEqual((run["cpu_source"], run["cpu_reason"]), ("cgroup2 cpu.stat", None))
        self.assertEqual((run["memory_source"], run["memory_reason"]), ("cgroup2 memory", None))
        self.assertEqual((run["end_reason"], run.notices), ("step ended", []))
        self.assertEqual((run["markers_dropped"], run["markers_invalid"]), (0, 0))

    def test_cpu_time_of_each_phase_is_the_jobs_own_figure(self):
        run, known = self.recorded("phases"), truths(self.guest.text("phases.out"))
        self.assertEqual(len(known), 6)
        for truth in known.values():
            _, phase = phase_of([run], truth)
            self.assertGreater(truth.cpu_ns, SETTLED_NS)
            apart = phase["cpu_time_ns"] - truth.cpu_ns
            print(f"{phase['path']}#{phase['number']}: job {truth.cpu_ns / 1e6:.2f} ms,"
                  f" recorded {apart / 1e6:+.2f} ms")
            self.assertLessEqual(abs(apart), allowed_ns(truth, run["tick_ns"]), (truth, phase))

    def test_peak_memory_of_each_phase_is_what_it_allocated(self):
        run = self.recorded("phases")
        for truth in truths(self.guest.text("phases.out")).values():
            _, phase = phase_of([run], truth)
            apart = phase["memory_peak_bytes"] - truth.memory_bytes
            print(f"{phase['path']}#{phase['number']}: job {truth.memory_bytes / MIB:.0f} MiB,"
                  f" recorded {apart / MIB:+.2f} MiB")
            self.assertLessEqual(abs(apart), 2 * MIB, (truth, phase))
        self.assertEqual(run.phase("solve")["memory_peak_source"], "high-water")

    def test_nothing_that_a_user_sees_differs(self):
        for what in ("out", "err", "rc"):
            self.assertEqual(self.guest.text(f"recorded.{what}"), self.guest.text(f"plain.{what}"))
        self.assertEqual(self.guest.number("recorded.rc"), 7)
        self.assertEqual(self.recorded("recorded").tasks[0]["exit_status"], 7 << 8)

    def test_the_recorder_sits_outside_of_the_job(self):
        groups = dict(line.split() for line in self.guest.text("groups.out").splitlines())
        step = f"/job_{self.guest.number('groups.job')}/step_0/"
        self.assertIn(step, groups["job"])
        jobs_own = groups["job"].removeprefix("0::").partition("/step_0/")[0]
        recorder = groups["recorder"].removeprefix("0::")
        self.assertFalse(f"{recorder}/".startswith(f"{jobs_own}/"), groups)

    def test_no_recorder_is_left(self):
        self.assertEqual(self.guest.text("recorders_left"), "")

    def test_the_job_submit_plugin_is_loaded(self):
        self.assertIn("sphase: job_submit: /sphase/etc/sphase.conf: read",
                      self.guest.text("slurmctld.log"))

    def test_records_of_this_slurm_are_merged(self):
        merged = json.loads(self.guest.text("merge.json"))
        self.assertEqual((merged["problems"], merged["warnings"]), ([], []))
        self.assertEqual(merged["records"], merged["runs"])

    def test_the_report_shows_the_phases(self):
        [start] = json.loads(self.guest.text("report.json"))["starts"]
        self.assertEqual((start["job"]["state"], start["job"]["records"]),
                         ("COMPLETED", "slurmctld"))
        self.assertEqual(start["notices"], [])
        rows = {row["path"]: row for row in start["rows"] if row["kind"] == "task phase"}
        self.assertEqual(set(rows), {"setup", "solve", "solve/iterate", "write"})
        for path in ("setup", "solve", "write"):
            self.assertEqual(rows[path]["cpu_time_ns"],
                             self.recorded("phases").phase(path)["cpu_time_ns"])

    def test_what_this_slurm_keeps_closed_comes_from_the_recorder(self):
        """24.11 tells no client what a job has on each node."""
        [start] = json.loads(self.guest.text("report.json"))["starts"]
        [node] = start["nodes"]
        self.assertEqual((node["cpus"], node["memory_allocated_bytes"]), (2, 600 * MIB))


if __name__ == "__main__":
    unittest.main()
