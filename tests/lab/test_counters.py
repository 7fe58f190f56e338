"""Events of each phase: from PAPI on the node to the report. This host may have no counters, so one
class gives the recorder a PMU that is made up: its instructions are CPU time in ns, its cycles page
faults (tests/spank/recorder/papi/fake_pmu.c), and so there is a truth to compare with."""

import re
import unittest

from telemetry import MIB, NS_PER_MS, ON, TelemetryCase, truths

WRAPPER = """#!/bin/sh
export LIBPFM_FORCE_PMU=skx LD_PRELOAD={pmu}
exec {recorder}
"""
PAGE = 4096


class CountersCase(TelemetryCase):
    def only_run(self, job):
        self.assertEqual(job.rc, 0, job.stderr)
        [run] = self.runs(job.id, 1)
        return run

    def workload(self, *arguments, option=ON, srun=()):
        job = self.srun([self.program("workload"), *arguments], option, *srun)
        return job, self.only_run(job)

    def counts(self, run, path, number, task=0):
        """{event: value} of one phase of one task; path "" and number 0 for the whole task."""
        return {row["event"]: row["value"] for row in run.counters
                if (row["path"], row["number"], row["task"]) == (path, number, task)}


class MadeUp(CountersCase):
    lab_name = "counters"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        recorder = cls.lab.build / "spank" / "recorder" / "sphase-recorder"
        pmu = cls.lab.build / "tests" / "spank" / "recorder" / "libfake_pmu.so"
        wrapper = cls.lab.dir / "recorder-with-pmu"
        wrapper.write_text(WRAPPER.format(pmu=pmu, recorder=recorder))
        wrapper.chmod(0o755)
        text = re.sub(r"recorder=\S+", f"recorder={wrapper}", cls.lab.plugstack_text())
        cls.lab.set_plugstack(text)

    def assertNear(self, counted, truth_ns):
        """Read some µs after the marker, by a recorder that shares the cores with the program."""
        self.assertLess(abs(counted - truth_ns), truth_ns / 100 + 5 * NS_PER_MS)

    def test_every_phase_of_every_task_has_its_own_counts(self):
        job, run = self.workload(srun=["-n2"])
        self.assertEqual((run["counter_source"], run["counter_refused"]), ("papi-hw", 0))
        paths = {"iterate": "solve/iterate"}
        checked = 0
        for truth in truths(job.stdout).values():
            path = paths.get(truth.phase, truth.phase)
            counts = self.counts(run, path, truth.number, truth.task)
            self.assertIn("PAPI_TOT_INS", counts, (path, run.counters))
            if truth.cpu_ns > 50 * NS_PER_MS:
                self.assertNear(counts["PAPI_TOT_INS"], truth.cpu_ns)
                checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_page_faults_of_a_phase_that_fills_memory(self):
        _, run = self.workload("-m", 64)
        solve = self.counts(run, "solve", 1)
        self.assertGreaterEqual(solve["PAPI_TOT_CYC"] * PAGE, 64 * MIB * 0.1)  # huge pages or not

    def test_threads_and_children_count_for_the_task(self):
        script = (f'"{self.program("workload")}" >/dev/null & '
                  f'"{self.program("workload")}"; wait')
        job = self.srun(["sh", "-c", script], ON, "-c2")
        run = self.only_run(job)
        whole = self.counts(run, "", 0)["PAPI_TOT_INS"]
        self.assertNear(whole, run.tasks[0]["cpu_time_ns"])
        own = sum(truth.cpu_ns for truth in truths(job.stdout).values()
                  if truth.phase != "iterate")
        self.assertGreater(whole, 1.8 * own)

    def test_the_report_shows_them(self):
        job, run = self.workload()
        report = self.report(job.id)
        self.assertIn("events papi-hw", " ".join(report.text.split()))
        self.assertRegex(report.text, r"(?m)^events +instr +IPC")
        row = report.row("task phase", "solve")
        self.assertEqual(row["instructions"], self.counts(run, "solve", 1)["PAPI_TOT_INS"])
        self.assertGreater(report.row("job", "job")["instructions"], row["instructions"])
        self.assertNotIn("some-counted", report.row("step", "step 0")["flags"])

    def test_a_job_names_its_own_events(self):
        _, run = self.workload(option=f"{ON}=events=PAPI_BR_MSP")
        self.assertEqual(set(self.counts(run, "", 0)), {"PAPI_BR_MSP"})

    def test_a_wrong_event_is_told_and_the_others_count(self):
        job, run = self.workload(option=f"{ON}=events=PAPI_TOT_INS+PAPI_NO_SUCH")
        self.assertEqual(set(self.counts(run, "", 0)), {"PAPI_TOT_INS"})
        self.assertIn("PAPI_NO_SUCH", run["counter_reason"])
        self.assertIn("PAPI_NO_SUCH", self.report(job.id).text)

    def test_no_events_if_a_job_wants_none(self):
        _, run = self.workload(option=f"{ON}=events=off")
        self.assertEqual(run.counters, [])
        self.assertEqual((run["counter_source"], run["counter_reason"]),
                         ("none", "not asked for (events=off)"))


class AsItIs(CountersCase):
    lab_name = "asitis"

    def test_this_node_counts_or_says_why_not(self):
        job, run = self.workload()
        text = " ".join(self.report(job.id).text.split())
        if run["counter_source"] == "none":
            self.assertEqual(run.counters, [])
            self.assertRegex(run["counter_reason"], "no hardware counters|forbids|no perf events")
            self.assertIn(f"no events ({run['counter_reason']})", text)
        else:
            self.assertIn(f"events {run['counter_source']}", text)
            self.assertGreater(self.counts(run, "solve", 1)["PAPI_TOT_INS"], 1_000_000)

    def test_the_node_is_asked_once_per_boot(self):
        self.workload()
        run_dir = self.store.run_dir
        probes = sorted(run_dir.glob("papi-*.probe"))
        self.assertEqual(len(probes), 1)
        written = probes[0].stat().st_mtime_ns
        self.workload()
        self.assertEqual(probes[0].stat().st_mtime_ns, written)


if __name__ == "__main__":
    unittest.main()
