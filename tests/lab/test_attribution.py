"""What the phases of a job used, against what the job says about itself."""

import math
import unittest

from telemetry import (FOLDED, MIB, NS_PER_MS, ON, UNCLOSED, TelemetryCase, truths)

SETTLED_NS = 100 * NS_PER_MS  # shorter phases are not asked for 1 %
PATHS = {"iterate": "solve/iterate", "middle": "outer/middle", "inner": "outer/middle/inner"}


def allowed_ns(truth, tick_ns):
    """1 %, or one kernel tick per CPU that was busy."""
    busy = max(1, math.ceil(truth.cpu_ns / truth.wall_ns))
    return max(truth.cpu_ns / 100, busy * tick_ns)


def phase_of(runs, truth):
    """The phase of the run and task that a line of truth speaks of."""
    for run in runs:
        for task in run.tasks:
            if task["global_task"] == truth.task:
                path = PATHS.get(truth.phase, truth.phase)
                return run, run.phase(path, truth.number, task["task"])
    raise AssertionError(f"no run has global task {truth.task}")


class AttributionCase(TelemetryCase):
    def assertCpuTimes(self, runs, known, least=1):
        """Every phase of at least 100 ms is right to 1 % or a tick."""
        checked = 0
        for truth in known.values():
            run, phase = phase_of(runs, truth)
            if truth.cpu_ns < SETTLED_NS:
                continue
            checked += 1
            apart = phase["cpu_time_ns"] - truth.cpu_ns
            self.assertLessEqual(abs(apart), allowed_ns(truth, run["tick_ns"]), (truth, phase))
        self.assertGreaterEqual(checked, least)

    def assertOwnUncertainty(self, runs, known):
        """cpu_resolution_ns is what the recorder itself says about its error, phase by phase."""
        for truth in known.values():
            _, phase = phase_of(runs, truth)
            # Marker and truth are two moments: a fault or an interrupt may fall between them.
            self.assertLessEqual(abs(phase["cpu_time_ns"] - truth.cpu_ns),
                                 phase["cpu_resolution_ns"] + NS_PER_MS, (truth, phase))

    def only_run(self, job):
        self.assertEqual(job.rc, 0, job.stderr)
        [run] = self.runs(job.id, 1)
        return run

    def shape(self, name, *arguments, options=()):
        """(run, truths) of a program of shapes.c."""
        job = self.srun([self.program("shapes"), name, *arguments], ON, *options)
        return self.only_run(job), truths(job.stdout)


class OneNode(AttributionCase):
    lab_name = "attribution"

    def workload(self, *options, srun=()):
        job = self.srun([self.program("workload"), *options], ON, *srun)
        return self.only_run(job), truths(job.stdout)

    def test_one_task_cpu_time_memory_and_writes(self):
        run, known = self.workload("-m", 64, "-w", 16, srun=["-c2"])
        self.assertCpuTimes([run], known, least=5)
        self.assertOwnUncertainty([run], known)
        self.assertEqual(run.notices, [])
        self.assertEqual((run["markers_dropped"], run["markers_invalid"]), (0, 0))
        self.assertHeld(run.phase("solve"), 64)
        for number in (1, 2, 3):
            self.assertHeld(run.phase("solve/iterate", number), 64)
        self.assertLess(run.phase("setup")["memory_peak_bytes"], 2 * MIB)
        self.assertWritten(run, run.phase("write"), 16 * MIB)
        self.assertWritten(run, run.phase("solve"), 0)

    def assertHeld(self, phase, mib):
        """Its peak is what it allocated, within 2 MiB (the program itself, kernel memory)."""
        over = phase["memory_peak_bytes"] - mib * MIB
        self.assertTrue(-2 * MIB <= over <= 2 * MIB, (phase["path"], over / MIB, phase))

    def assertWritten(self, run, phase, size):
        begin = run.sample_near(phase["begin_ns"])
        end = run.sample_near(phase["end_ns"])
        for column in ("io_write_bytes", "io_write_call_bytes"):
            moved = end[column] - begin[column]
            self.assertTrue(size <= moved <= size * 1.01 + 65536, (column, moved, size))

    def test_the_peak_of_a_phase_is_its_own_after_a_larger_one_and_beside_page_cache(self):
        run, _ = self.shape("memory")
        self.assertHeld(run.phase("brief"), 64)
        self.assertHeld(run.phase("large"), 160)
        self.assertHeld(run.phase("small"), 32)
        self.assertLess(run.phase("write")["memory_peak_bytes"], 3 * MIB)
        self.assertEqual(run.phase("large")["memory_peak_source"], "high-water")
        self.assertEqual(run.phase("small")["memory_peak_source"], "sampled")
        self.assertWritten(run, run.phase("write"), 24 * MIB)

    def test_phases_and_what_is_outside_of_them_make_up_the_step(self):
        run, known = self.shape("outside")
        self.assertCpuTimes([run], {key: known[key] for key in known if key[1] != "whole"}, least=2)
        total = run.samples[-1]["cpu_time_ns"]
        phases = sum(phase["cpu_time_ns"] for phase in run.phases if phase["depth"] == 0)
        in_phases = sum(truth.cpu_ns for truth in known.values() if truth.phase != "whole")
        outside = known[0, "whole", 1].cpu_ns - in_phases
        self.assertGreater(outside, 200 * NS_PER_MS)
        # What the process used before main() is in the total and in no truth: 2 ms of exec.
        self.assertLessEqual(abs(phases + outside - total), total / 100 + 2 * NS_PER_MS)
        self.assertEqual(run.tasks[0]["cpu_time_ns"], total)
        report = self.report(run["job_id"])
        self.assertLessEqual(abs(report.row("outside", "(outside)")["cpu_time_ns"] - outside),
                             total / 100 + 2 * NS_PER_MS)
        self.assertEqual(report.row("step", "step 0")["cpu_time_ns"], total)

    def test_a_step_that_is_over_at_once_has_two_samples(self):
        run = self.only_run(self.srun(["true"], ON))
        self.assertEqual([sample["kind"] for sample in run.samples], ["start", "end"])
        self.assertGreater(run.samples[-1]["cpu_time_ns"], 0)
        self.assertEqual(run.phases, [])
        self.assertEqual(run.notices, [])

    def test_periodic_samples_come_at_the_period_asked_for(self):
        run = self.only_run(self.srun(["sleep", "1"], f"{ON}=period=100ms"))
        ticks = [sample["time_ns"] for sample in run.samples if sample["kind"] == "tick"]
        self.assertTrue(7 <= len(ticks) <= 11, ticks)
        self.assertEqual(run["period_ns"], 100 * NS_PER_MS)

    def test_three_phases_deep(self):
        run, known = self.shape("nested")
        self.assertCpuTimes([run], known, least=3)
        self.assertEqual([(phase["path"], phase["depth"], phase["flags"]) for phase in run.phases],
                         [("outer", 0, 0), ("outer/middle", 1, 0), ("outer/middle/inner", 2, 0)])
        self.assertEqual(run.notices, [])

    def test_a_phase_that_nobody_ends_is_closed_with_its_task_and_says_so(self):
        run, _ = self.shape("unclosed")
        phase = run.phase("open")
        self.assertEqual(phase["flags"] & UNCLOSED, UNCLOSED)
        self.assertLessEqual(phase["end_ns"], run.tasks[0]["end_ns"] + 50 * NS_PER_MS)
        self.assertGreaterEqual(phase["cpu_time_ns"], 100 * NS_PER_MS)

    def test_an_end_too_many_is_named_and_changes_nothing(self):
        run, known = self.shape("twice")
        self.assertCpuTimes([run], known)
        self.assertEqual(len(run.phases), 1)
        self.assertEqual(run.phase("once")["count"], 1)
        [notice] = run.notices
        self.assertEqual(notice["code"], "unmatched-end")
        self.assertIn('"once"', notice["text"])

    def test_ten_threads_in_one_phase_are_one_phase(self):
        run, known = self.shape("threads", options=["-c4"])
        self.assertCpuTimes([run], known)
        [phase] = run.phases
        self.assertEqual((phase["threads"], phase["count"], phase["flags"]), (10, 10, 0))

    def test_a_forked_child_has_phases_of_its_own(self):
        run, known = self.shape("forked")
        self.assertCpuTimes([run], known)
        self.assertEqual({phase["path"] for phase in run.phases}, {"parent", "child"})
        self.assertEqual(run.phase("child")["flags"], 0)
        parent = run.phase("parent")
        self.assertGreaterEqual(parent["cpu_time_ns"], 200 * NS_PER_MS, "the child's is its own")
        self.assertEqual(run.notices, [])

    def test_work_of_a_child_that_marks_nothing_is_its_parents_phase(self):
        run, known = self.shape("burn")
        self.assertCpuTimes([run], known)
        self.assertEqual(run.phase("burn")["cpu_source"], "cgroup")

    def test_ten_million_pairs_are_folded_counted_and_cheap(self):
        pairs = 10_000_000
        run, known = self.shape("hot", str(pairs), options=["-c2"])
        # A marker is read or counted as dropped, but for the end of a pair whose begin was dropped:
        # that one is not even tried.
        begun = run["markers"] + run["markers_dropped"] - pairs
        self.assertEqual(sum(phase["count"] for phase in run.phases), begun)
        self.assertEqual(run["markers_invalid"], 0)
        self.assertGreater(begun, pairs / 1000)
        self.assertEqual({phase["path"] for phase in run.phases}, {"hot"})
        self.assertIn("folded", {notice["code"] for notice in run.notices})
        self.assertTrue(any(phase["flags"] & FOLDED for phase in run.phases))
        self.assertLess(len(run.phases), 1000)
        used = known[0, "hot", 1]
        self.assertLess(used.cpu_ns / pairs, 300, "ns per pair, the job's own CPU time")
        self.assertLess(run["recorder_cpu_ns"], used.wall_ns / 5)
        self.assertLess(run["recorder_rss_bytes"], 64 * MIB)


class TwoNodes(AttributionCase):
    lab_name = "attributiontwo"
    lab_nodes = 2

    def layout(self, runs):
        """{node: {local task: global task}}"""
        return {run["node"]: {task["task"]: task["global_task"] for task in run.tasks}
                for run in runs}

    def test_two_tasks_of_two_threads_on_each_of_two_nodes(self):
        job = self.srun([self.program("workload"), "-s", 600, "-c", 1200], ON, "-N2",
                        "--ntasks-per-node=2", "-c2")
        self.assertEqual(job.rc, 0, job.stderr)
        runs = self.runs(job.id, 2)
        self.assertEqual(self.layout(runs), {"attributiontwo1": {0: 0, 1: 1},
                                             "attributiontwo2": {0: 2, 1: 3}})
        self.assertCpuTimes(runs, truths(job.stdout), least=12)

    def test_tasks_of_different_load_are_told_apart_by_their_global_ids(self):
        """Dealt out in turns, so that local and global ids differ: node 1 has ranks 0 and 2."""
        script = f'exec {self.program("workload")} -s $((120 + 200 * SLURM_PROCID)) -c 0 -w 0'
        job = self.srun(["bash", "-c", script], ON, "-N2", "--ntasks-per-node=2", "-m", "cyclic")
        self.assertEqual(job.rc, 0, job.stderr)
        runs = self.runs(job.id, 2)
        self.assertEqual(self.layout(runs), {"attributiontwo1": {0: 0, 1: 2},
                                             "attributiontwo2": {0: 1, 1: 3}})
        known = truths(job.stdout)
        self.assertCpuTimes(runs, known, least=4)
        for rank in range(4):
            _, phase = phase_of(runs, known[rank, "setup", 1])
            self.assertAlmostEqual(phase["cpu_time_ns"], (120 + 200 * rank) * NS_PER_MS,
                                   delta=5 * NS_PER_MS)
        for run in runs:
            self.assertEqual(run["step_tasks"], 4)
            self.assertEqual(run["node_tasks"], 2)


if __name__ == "__main__":
    unittest.main()
