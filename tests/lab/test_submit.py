"""job_submit/phase_resize inside a real slurmctld: every rule once, through sbatch, srun and salloc."""

import re
import unittest

from telemetry import TelemetryCase, U1, U2, wait_for

APPLY = "--phase-resize=apply"


def minutes(text):
    """Minutes of Slurm's [days-]hours:minutes:seconds."""
    days, _, clock = text.rpartition("-")
    hours, mins, _ = map(int, clock.split(":"))
    return int(days or 0) * 1440 + hours * 60 + mins


class Submit(TelemetryCase):
    lab_name = "submit"
    lab_nodes = 4
    lab_conf = ("GresTypes=gpu",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.example = cls.lab.sphase_conf.read_text()
        cls.uid = cls.user_number(U1)
        cls.learn(f"{cls.uid}/big nodes=1 memory_mib=320 peak_mib=250 time_s=900 cpus=1"
                  " partition=debug phase=stage:1:200 phase=solve:4:320")

    # --- tools ------------------------------------------------------------------------------------

    @classmethod
    def user_number(cls, user):
        return int(cls.lab.run(["id", "-u", user], check=True).stdout)

    @classmethod
    def learn(cls, *lines):
        """Puts an advice table of these lines in place (tests/job_submit/write_table.cpp)."""
        cls.lab.run([cls.lab.build / "tests" / "job_submit" / "write_table",
                     cls.lab.dir / "state-sphase" / "advice.cdb"],
                    input="\n".join(lines) + "\n", check=True)

    def conf(self, *lines):
        """The example sphase.conf and these lines, once slurmctld says that it has read them; undone
        at the end of the test."""
        if lines:
            self.addCleanup(self.conf)
        def times_read():
            self.dry()
            return self.lab.log("slurmctld").read_text().count("sphase.conf: read\n")

        before = times_read()
        self.lab.set_sphase_conf("\n".join([self.example, *lines, ""]))
        wait_for(lambda: times_read() > before, 10, "slurmctld to see sphase.conf")

    def dry(self, *options, script="#!/bin/bash\nhostname\n"):
        done = self.lab.run_as(U1, ["sbatch", "--test-only", *options], input=script,
                               env={"SPHASE_EXPLAIN": "1"})
        return done.stdout + done.stderr

    def submit(self, *options, script="hostname", user=U1, env=None):
        """sbatch of profile "big", held: nothing has to run. Returns (job as a dict, what was said)."""
        done = self.lab.run_as(
            user, ["sbatch", "--parsable", "--hold", "--phase-telemetry=profile=big", *options],
            input=f"#!/bin/bash\n{script}\n", env=env)
        self.assertEqual(done.rc, 0, done.stderr)
        job_id = done.stdout.split(";")[0].strip()
        job = self.lab.job(job_id)
        comment = self.lab.run(["scontrol", "--oneliner", "show", "job", job_id]).stdout
        found = re.search(r"AdminComment=(.*?) WorkDir=|AdminComment=(.*)", comment)
        job["audit"] = (found[1] or found[2] or "") if found else ""
        self.lab.run(["scancel", job_id])
        return job, done.stderr

    def assertSize(self, job, nodes=None, memory=None, time=None, cpus=None):
        if nodes is not None:
            self.assertEqual(job["NumNodes"].split("-")[0], str(nodes))
        if memory is not None:
            self.assertEqual(job.get("MinMemoryNode") or job.get("MinMemoryCPU"), memory)
        if time is not None:
            self.assertEqual(minutes(job["TimeLimit"]), time)
        if cpus is not None:
            self.assertEqual(job["CPUs/Task"], str(cpus))

    # --- modes ------------------------------------------------------------------------------------

    def test_apply_changes_and_says_so(self):
        job, said = self.submit("-N4", "--mem=800", APPLY)
        self.assertSize(job, nodes=1, memory="320M", time=15)
        self.assertIn("sphase: nodes 4 -> 1, memory 800M -> 320M, time limit unset -> 0:15:00 "
                      "(peak 250M in 14 runs); --phase-resize=off keeps yours", said)
        self.assertIn("asked=nodes:4,tasks:-,cpus:-,memory:800,time:- set=nodes:1,memory:320,time:15",
                      job["audit"])

    def test_advise_is_the_default_and_changes_nothing(self):
        job, said = self.submit("-N4", "--mem=800")
        self.assertSize(job, nodes=4, memory="800M", time=10)
        self.assertIn("this would do: nodes 4 -> 1, memory 800M -> 320M", said)

    def test_observe_is_silent(self):
        job, said = self.submit("-N4", "--mem=800", "--phase-resize=observe")
        self.assertSize(job, nodes=4, memory="800M")
        self.assertNotIn("sphase", said)
        self.assertIn("mode=observe", job["audit"])

    def test_off_always_wins(self):
        job, said = self.submit("-N4", "--mem=800", "--phase-resize=off")
        self.assertSize(job, nodes=4, memory="800M")
        self.assertEqual(job["audit"], "")
        self.assertNotIn("sphase", said)
        self.conf("Partition=half ResizeMode=off")
        job, _ = self.submit("-N2", "-p", "half", "--mem=800", APPLY)
        self.assertSize(job, nodes=2, memory="800M")

    def test_the_site_applies_to_unset_fields_only(self):
        self.conf("ResizeMode=apply")
        job, said = self.submit("-N4", "--mem=800")
        self.assertSize(job, nodes=4, memory="800M", time=15)
        self.assertIn("time limit unset -> 0:15:00", said)
        job, _ = self.submit("-N4", "--mem=800", "-t", "60")
        self.assertSize(job, nodes=4, memory="800M", time=60)
        job, _ = self.submit("-N4")
        self.assertSize(job, nodes=4, memory="320M")

    def test_rules_for_partition_account_and_user(self):
        self.conf("Partition=debug ResizeMode=apply OptIn=memory")
        job, _ = self.submit("-N4", "-p", "debug", "--mem=800")
        self.assertSize(job, nodes=4, memory="320M")
        self.conf(f"Uid={self.uid} ResizeMode=apply OptIn=nodes")
        job, _ = self.submit("-N4", "--mem=800")
        self.assertSize(job, nodes=1, memory="800M")
        self.conf("Account=lab ResizeMode=apply OptIn=nodes,memory")
        job, _ = self.submit("-N4", "--mem=800", "-A", "lab")
        self.assertSize(job, nodes=1, memory="320M")
        job, _ = self.submit("-N4", "--mem=800")
        self.assertSize(job, nodes=4, memory="800M")

    def test_floors_and_ceilings(self):
        self.conf("MinNodes=2", "MinMemory=400", "MinTime=30")
        job, _ = self.submit("-N4", "--mem=800", APPLY)
        self.assertSize(job, nodes=2, memory="400M", time=30)
        self.conf("MaxMemory=300", "MaxTime=12")
        job, _ = self.submit("-N4", "--mem=800", APPLY)
        self.assertSize(job, nodes=1, memory="800M", time=10)
        self.assertIn("memory:site-ceiling", job["audit"])
        self.assertIn("time:site-ceiling", job["audit"])

    # --- fields -----------------------------------------------------------------------------------

    def test_time_is_lowered_only_by_opting_in(self):
        job, said = self.submit("-N4", "-t", "60", APPLY)
        self.assertSize(job, time=60)
        self.assertIn("--phase-resize=apply,time asks for it", said)
        job, _ = self.submit("-N4", "-t", "60", "--phase-resize=apply,time")
        self.assertSize(job, time=15)

    def test_memory_is_raised_to_the_peak_and_its_margin(self):
        job, _ = self.submit("-N4", "--mem=100", APPLY)
        self.assertSize(job, memory="320M")

    def test_memory_per_cpu(self):
        job, _ = self.submit("-N4", "--mem-per-cpu=700", "-c", "2", APPLY)
        self.assertSize(job, nodes=1, memory="160M", cpus=2)

    def test_tasks_cpus_and_environment_follow(self):
        out = self.lab.home(U1) / f"{self.new_name()}.out"
        done = self.lab.run_as(
            U1, ["sbatch", "--parsable", "--phase-telemetry=profile=big", "-N4", "--mem=800", "-c2",
                 "--ntasks-per-node=2", APPLY, "-o", out],
            input="#!/bin/bash\nsrun sh -c 'echo $SLURM_NTASKS $SLURM_CPUS_PER_TASK'\n"
                  "echo plan $SPHASE_PLAN\n", check=True)
        job = int(done.stdout)
        self.lab.wait_job(job, "COMPLETED")
        self.assertSize(self.lab.job(job), nodes=1, cpus=1)
        lines = out.read_text().splitlines()
        self.assertEqual(lines[:2], ["2 1", "2 1"])
        self.assertIn('{"path":"solve","nodes":4,"memory_mib":320,', lines[2])

    def test_a_job_that_resizes_itself_begins_with_its_first_phase(self):
        self.learn(f"{self.uid}/big nodes=4 memory_mib=320 peak_mib=250 partition=debug"
                   " phase=stage:1:200 phase=solve:4:320")
        self.addCleanup(self.setUpAdvice)
        job, _ = self.submit("-N4", "--mem=800", APPLY, script="sphase begin stage --nodes 1")
        self.assertSize(job, nodes=1, memory="320M")
        job, _ = self.submit("-N4", "--mem=800", "--phase-resize=apply,plan")
        self.assertSize(job, nodes=1)
        job, _ = self.submit("-N4", "--mem=800", APPLY)
        self.assertSize(job, nodes=4)

    def setUpAdvice(self):
        self.learn(f"{self.uid}/big nodes=1 memory_mib=320 peak_mib=250 time_s=900 cpus=1"
                   " partition=debug phase=stage:1:200 phase=solve:4:320")

    # --- left alone -------------------------------------------------------------------------------

    def assertLeft(self, why, *options, **more):
        job, _ = self.submit("-N2", "--mem=800", APPLY, *options, **more)
        self.assertSize(job, nodes=2, memory="800M")
        self.assertIn(f"left=job:{why}", job["audit"])

    def test_jobs_that_are_left_alone(self):
        self.assertLeft("array", "--array=1-2")
        self.assertLeft("script-sizes", script="srun -n2 hostname")
        # The lab has no GPU: Slurm refuses such a job, after the plugin has said its part.
        self.assertIn("left as it is: it asks for GRES",
                      self.dry("--phase-telemetry=profile=big", "--gres=gpu:1", APPLY))
        self.lab.run(["scontrol", "create", "reservation", "ReservationName=r", "StartTime=now",
                      "Duration=60", f"Users={U1}", "Nodes=ALL", "Flags=IGNORE_JOBS"], check=True)
        self.addCleanup(self.lab.run, ["scontrol", "delete", "ReservationName=r"])
        self.assertLeft("reservation", "--reservation=r")

    def test_nodes_by_name_and_uneven_tasks(self):
        job, _ = self.submit("-N2", "-w", ",".join(self.lab.nodes[:2]), APPLY)
        self.assertSize(job, nodes=2)
        self.assertIn("nodes:node-list", job["audit"])
        job, _ = self.submit("-N4", "-n6", APPLY)
        self.assertIn("nodes:uneven", job["audit"])
        job, _ = self.submit("-N2", "-p", "half", APPLY)
        self.assertIn("nodes:other-partition", job["audit"])

    def test_het_jobs(self):
        done = self.lab.run_as(U1, ["sbatch", "--parsable", "--hold", APPLY, "-N2", "--mem=800",
                                    ":", "-N1"], input="#!/bin/bash\nhostname\n", check=True)
        job = self.lab.run(["scontrol", "show", "job", done.stdout.strip()]).stdout
        self.lab.run(["scancel", done.stdout.strip()])
        self.assertEqual(job.count("left=job:het-job"), 2, job)

    def test_what_slurm_refuses_it_refuses_as_before(self):
        done = self.lab.run_as(U1, ["sbatch", APPLY, "--phase-telemetry=profile=big", "-N2",
                                    "-p", "nosuch"], input="#!/bin/bash\nhostname\n")
        self.assertNotEqual(done.rc, 0)
        self.assertIn("Invalid partition", done.stderr)

    def test_another_users_job_gets_nothing(self):
        job, _ = self.submit("-N4", "--mem=800", APPLY, user=U2)
        self.assertSize(job, nodes=4, memory="800M")
        self.assertIn("advice=none", job["audit"])

    def test_an_ordinary_user_cannot_read_the_table(self):
        done = self.lab.run_as(U1, ["cat", self.lab.dir / "state-sphase" / "advice.cdb"])
        self.assertNotEqual(done.rc, 0)

    # --- srun and salloc --------------------------------------------------------------------------

    def test_srun_and_salloc_keep_what_was_typed(self):
        for command in (["srun"], ["salloc"]):
            with self.subTest(command[0]):
                done = self.lab.run_as(U1, [*command, "--phase-telemetry=profile=big", APPLY, "-N2",
                                            "--mem=800", "bash", "-c", "echo $SLURM_NNODES"])
                self.assertEqual(done.rc, 0, done.stderr)
                self.assertEqual(set(done.stdout.split()), {"2"})
                self.assertIn("time limit unset -> 0:15:00", done.stderr)
                self.assertNotIn("nodes", done.stderr)

    def test_srun_and_salloc_get_what_they_left_unset(self):
        done = self.lab.run_as(U1, ["srun", "--phase-telemetry=profile=big", APPLY, "bash", "-c",
                                    "squeue -h -j $SLURM_JOB_ID -o %m"])
        self.assertEqual((done.rc, done.stdout.strip()), (0, "320M"), done.stderr)
        self.assertIn("memory unset -> 320M", done.stderr)
        done = self.lab.run_as(U1, ["salloc", "--phase-telemetry=profile=big", APPLY, "srun",
                                    "bash", "-c", "squeue -h -j $SLURM_JOB_ID -o %m"])
        self.assertEqual((done.rc, done.stdout.strip()), (0, "320M"), done.stderr)

    def test_modes_of_srun_and_salloc(self):
        for command in (["srun"], ["salloc", "srun"]):
            for mode, said, memory in (("off", "", "500M"), ("observe", "", "500M"),
                                       ("advise", "this would do: memory unset -> 320M", "500M"),
                                       ("apply", "memory unset -> 320M", "320M")):
                with self.subTest(command=command[0], mode=mode):
                    done = self.lab.run_as(
                        U1, [command[0], "--phase-telemetry=profile=big",
                             f"--phase-resize={mode}", "-n1", *command[1:], "bash", "-c",
                             "squeue -h -j $SLURM_JOB_ID -o %m"])
                    self.assertEqual((done.rc, done.stdout.strip()), (0, memory), done.stderr)
                    self.assertEqual("sphase: " in done.stderr, bool(said), done.stderr)
                    self.assertIn(said, done.stderr)

    def test_srun_and_salloc_of_jobs_that_are_left_alone(self):
        self.lab.run(["scontrol", "create", "reservation", "ReservationName=s", "StartTime=now",
                      "Duration=60", f"Users={U1}", "Nodes=ALL", "Flags=IGNORE_JOBS"], check=True)
        self.addCleanup(self.lab.run, ["scontrol", "delete", "ReservationName=s"])
        for command in ("srun", "salloc"):
            with self.subTest(command):
                done = self.lab.run_as(U1, [command, "--phase-telemetry=profile=big", APPLY,
                                            "--reservation=s", "true"])
                self.assertEqual(done.rc, 0, done.stderr)
                self.assertIn("left as it is: it runs in a reservation", done.stderr)

    def test_a_wrong_value_is_refused_before_anything_is_queued(self):
        for command in (["sbatch"], ["srun", "true"], ["salloc", "true"]):
            done = self.lab.run_as(U1, [command[0], "--phase-resize=yes", *command[1:]],
                                   input="#!/bin/bash\n")
            self.assertNotEqual(done.rc, 0)
            self.assertIn("--phase-resize=yes is not known; use --phase-resize=off, observe,",
                          done.stderr)

    # --- sphase.conf ------------------------------------------------------------------------------

    def test_a_bad_line_turns_it_off_and_says_which_one(self):
        self.addCleanup(self.conf)
        self.lab.set_sphase_conf(self.example + "\nMaxNodes=lots\n")
        line = len(self.example.splitlines()) + 2

        def off():
            job, _ = self.submit("-N4", APPLY)
            return job["NumNodes"].split("-")[0] == "4"

        wait_for(off, 10, "slurmctld to see the bad sphase.conf")
        log = self.lab.log("slurmctld").read_text()
        self.assertIn(f"sphase.conf: line {line}: MaxNodes=lots: what is right is a number", log)


if __name__ == "__main__":
    unittest.main()
