"""--phase-telemetry in srun, sbatch and salloc: which steps it turns on, and what it refuses."""

import os
import pty
import unittest

from telemetry import ON, U1, TelemetryCase, build_dir, recorders

# Prints whether this very step has a recorder.
SOCKET = 'echo "$(basename "$0") ${SPHASE_SOCKET:-none}"'
RIGHT_FORM = "use --phase-telemetry[=off] or --phase-telemetry=period=1s,events="


class OptionsCase(TelemetryCase):
    def steps(self, job_id, count, limit_s=15):
        """{step: run} of a job on one node, once `count` runs have ended."""
        return {run["step"]: run for run in self.runs(job_id, count, limit_s=limit_s)}

    def assertOnlySteps(self, job_id, *steps):
        """Runs of just these steps, nothing said about them."""
        found = self.steps(job_id, len(steps))
        self.assertEqual(sorted(found), sorted(steps))
        self.assertEqual(self.store.notices(job_id), [])
        return found


class Steps(OptionsCase):
    """Which steps are recorded."""
    lab_name = "options"
    lab_conf = ["LaunchParameters=use_interactive_step", "PrologFlags=Contain"]

    def test_srun_is_step_0_and_the_extern_step_is_no_run(self):
        job = self.srun(["true"], ON)
        self.assertOnlySteps(job.id, "0")

    def test_srun_without_it_is_left_alone(self):
        job = self.srun(["bash", "-c", "env"])
        self.assertNotIn("SPHASE_SOCKET", job.stdout)
        self.assertNoRun(job.id)

    def test_salloc_turns_on_the_steps_inside_it(self):
        name = self.new_name()
        done = self.lab.run_as(U1, ["salloc", "-J", name, ON, "srun", "true"])
        self.assertEqual(done.rc, 0, done.stderr)
        self.assertOnlySteps(self.id_of(name), "0")

    def test_the_shell_of_salloc_is_the_interactive_step(self):
        """That step wants a terminal, so it gets one, in which we type."""
        name = self.new_name()
        ours, its = pty.openpty()
        with self.lab.popen_as(U1, ["setsid", "--ctty", "--wait", "salloc", "-J", name, ON],
                               stdin=its, stdout=its, stderr=its) as salloc:
            os.close(its)
            os.write(ours, b"srun true; exit\n")
            self.lab.wait_for(lambda: salloc.poll() is not None, 30, "salloc to end")
        os.close(ours)
        found = self.assertOnlySteps(self.id_of(name), "interactive", "0")
        self.assertEqual(found["interactive"].tasks[0]["task"], 0)

    def test_sbatch_turns_on_the_batch_step_and_every_step_inside(self):
        for option in (ON, f"{ON}=period=200ms,profile=mine"):
            with self.subTest(option=option):
                job = self.batch("srun true; srun true", option)
                found = self.assertOnlySteps(job.id, "batch", "0", "1")
                asked = {"period=200ms,profile=mine": (200_000_000, "mine")}
                for run in found.values():
                    self.assertEqual((run["period_ns"], run["profile"]),
                                     asked.get(option[len(ON) + 1:], (1_000_000_000, None)), run)

    def test_an_environment_that_is_not_exported_does_not_lose_it(self):
        for options, inner in (
                (["--export=NONE"], "srun true; srun --export=ALL true"),
                (["--export=FOO=bar"], "srun true"),
                ([], "srun --export=NONE true; srun --export=FOO=bar true"),
                (["--export=NIL"], "srun true")):
            with self.subTest(options=options, inner=inner):
                job = self.batch(inner, f"{ON}=period=300ms", *options)
                steps = [str(step) for step in range(inner.count("srun"))]
                for run in self.assertOnlySteps(job.id, "batch", *steps).values():
                    self.assertEqual(run["period_ns"], 300_000_000, run)

    def test_off_inside_a_job_that_is_on(self):
        job = self.batch(f"srun {ON}=off bash -c '{SOCKET}' off; srun bash -c '{SOCKET}' on;"
                         f"bash -c '{SOCKET}' batch", ON)
        self.assertOnlySteps(job.id, "batch", "1")
        sockets = dict(line.split() for line in job.stdout.splitlines())
        self.assertEqual(sockets["off"], "none")
        self.assertEqual(len(set(sockets.values())), 3, sockets)

    def test_the_socket_of_the_batch_step_does_not_leak_into_a_step_that_is_off(self):
        """Whatever way the environment takes, and however the option got lost or undone."""
        job = self.batch(f"unset $(env | grep -o '^[A-Z_]*SPANK[a-zA-Z_]*')\n"
                         f"srun bash -c '{SOCKET}' lost; "
                         f"srun {ON}=off --export=ALL bash -c '{SOCKET}' off", ON)
        self.assertIn("off none\n", job.stdout)
        self.assertRegex(job.stdout, r"lost (none|/\S+)\n")

    def test_an_inner_srun_may_ask_for_something_else(self):
        job = self.batch(f"srun {ON}=period=50ms true", ON)
        found = self.assertOnlySteps(job.id, "batch", "0")
        self.assertEqual(found["0"]["period_ns"], 50_000_000)
        self.assertEqual(found["batch"]["period_ns"], 1_000_000_000)

    def test_an_inner_srun_may_ask_where_the_job_did_not(self):
        job = self.batch(f"srun {ON} true; srun true")
        self.assertOnlySteps(job.id, "0")

    def test_the_last_of_two_options_counts(self):
        job = self.srun(["true"], f"{ON}=period=50ms", f"{ON}=off")
        self.assertNoRun(job.id)

    def test_no_recorder_runs_for_a_job_that_did_not_ask(self):
        program = self.lab.build / "spank" / "recorder" / "sphase-recorder"
        before = set(recorders(program))
        job = self.lab.sbatch(U1, ["--wrap", "srun sleep 30"])
        self.lab.wait_job(job, "RUNNING")
        self.lab.wait_for(lambda: f"{job}.0" in self.lab.run(["squeue", "-s", "-h"]).stdout, 20,
                          "its step")
        self.assertLessEqual(set(recorders(program)), before)
        self.lab.run(["scancel", job], check=True)
        self.lab.wait_job(job, "CANCELLED")
        self.assertNoRun(job)


class Refused(OptionsCase):
    """What is refused, and what is shown."""
    lab_name = "optionsbad"

    def setUp(self):
        self.lab.wait_idle()

    def assertRefused(self, value, what):
        """By all three, in one line of ours, before anything is queued."""
        for command in (["srun", f"{ON}={value}", "true"],
                        ["sbatch", f"{ON}={value}", "--wrap", "true"],
                        ["salloc", f"{ON}={value}", "true"]):
            with self.subTest(command=command):
                before = self.lab.sbatch(U1, ["--hold", "--wrap", "true"])
                done = self.lab.run_as(U1, command)
                after = self.lab.sbatch(U1, ["--hold", "--wrap", "true"])
                self.lab.run(["scancel", before, after], check=True)
                self.assertNotEqual(done.rc, 0)
                self.assertEqual(done.stdout, "")
                ours = [line for line in done.stderr.splitlines() if "use " in line]
                self.assertEqual(len(ours), 1, done.stderr)
                self.assertIn(what, ours[0])
                self.assertTrue(ours[0].startswith(f"{command[0]}: error: {ON}: "), ours[0])
                self.assertEqual(after, before + 1, "a job id was used up")

    def test_a_value_that_is_no_pair(self):
        self.assertRefused("fast", f'"fast" is not key=value; {RIGHT_FORM}')

    def test_an_unknown_key(self):
        self.assertRefused("perod=1s", f'unknown key "perod"; {RIGHT_FORM}')

    def test_a_period_without_unit_or_out_of_range(self):
        for value in ("period=1", "period=1ms", "period=2h", "period="):
            self.assertRefused(value, "is not a time from 10ms to 60m; use period=500ms")

    def test_a_profile_that_is_no_name(self):
        self.assertRefused("profile=a b", "is not a name; use letters")

    def test_events_that_are_no_list(self):
        self.assertRefused("events=PAPI TOT", "is not a list of PAPI events; use events=")

    def test_the_help_shows_it(self):
        for command in ("srun", "sbatch", "salloc"):
            shown = self.lab.run_as(U1, [command, "--help"]).stdout
            self.assertIn("--phase-telemetry", shown)
            self.assertIn("period=1s", shown)


class SiteDefault(OptionsCase):
    """default=on in plugstack.conf."""
    lab_name = "optionson"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.lab.plugstack_text()
        cls.lab.set_plugstack(text.replace(" default=off ", " default=on "))
        assert cls.lab.plugstack_text() != text, build_dir()

    def test_every_step_of_every_job_is_recorded(self):
        job = self.srun(["true"])
        self.assertOnlySteps(job.id, "0")
        job = self.batch("srun true")
        self.assertOnlySteps(job.id, "batch", "0")

    def test_off_wins(self):
        job = self.srun(["true"], f"{ON}=off")
        self.assertNoRun(job.id)
        job = self.batch("srun true", f"{ON}=off")
        self.assertNoRun(job.id)
        job = self.batch("srun true", f"{ON}=off", "--export=NONE")
        self.assertNoRun(job.id)

    def test_off_for_one_step(self):
        job = self.batch(f"srun {ON}=off true; srun true")
        self.assertOnlySteps(job.id, "batch", "1")


if __name__ == "__main__":
    unittest.main()
