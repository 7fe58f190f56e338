"""The lab itself: it comes up, behaves like a Slurm cluster, and leaves nothing behind."""

import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lab_cgroups
import lab_procs
import lab_setup
from lab import Lab, LabError, USERS


def processes_of(lab):
    """Pids whose command line or environment speaks of the lab's folder, and those in its cgroups."""
    found = set()
    for tree in lab_cgroups.trees(lab.nodes):
        found |= lab_cgroups.pids_in(tree)
    folder = f"{lab.dir}/".encode()
    for pid in lab_procs.all_pids():
        text = lab_procs.read_proc(pid, "cmdline") + lab_procs.read_proc(pid, "environ")
        if folder in text:
            found.add(pid)
    return found


class MergeConf(unittest.TestCase):
    TEXT = "KillWait=5\nSchedulerParameters=a=1,b\nNodeName=n1 CPUs=4\n"

    def test_a_known_key_is_replaced_whatever_its_case(self):
        self.assertIn("killwait=9\n", lab_setup.merge_conf(self.TEXT, ["killwait=9"]))
        self.assertNotIn("KillWait=5", lab_setup.merge_conf(self.TEXT, ["killwait=9"]))

    def test_plus_appends_after_a_comma(self):
        self.assertIn("SchedulerParameters=a=1,b,c=2\n",
                      lab_setup.merge_conf(self.TEXT, ["SchedulerParameters+=c=2"]))

    def test_an_unknown_key_is_added(self):
        for change in ("Licenses=grow:5", "Licenses+=grow:5"):
            self.assertTrue(lab_setup.merge_conf(self.TEXT, [change]).endswith("Licenses=grow:5\n"))

    def test_a_node_line_is_added_beside_the_others(self):
        merged = lab_setup.merge_conf(self.TEXT, ["NodeName=n2 CPUs=1"])
        self.assertIn("NodeName=n1 CPUs=4\n", merged)
        self.assertIn("NodeName=n2 CPUs=1\n", merged)

    def test_a_change_without_a_value_is_refused(self):
        with self.assertRaisesRegex(LabError, "Key=Value"):
            lab_setup.merge_conf(self.TEXT, ["KillWait"])


class ExamplePlugstack(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.example = self.dir / "plugstack.conf"
        self.example.write_text(
            "optional /usr/lib/x86_64-linux-gnu/slurm-wlm/phase_telemetry.so"
            " recorder=/usr/libexec/sphase/sphase-recorder store=/var/spool/sphase"
            " run=/run/sphase\n")

    def test_every_path_is_replaced_once_even_if_the_lab_lives_below_such_a_path(self):
        build = self.dir / "build"
        (build / "spank").mkdir(parents=True)
        (build / "spank" / "phase_telemetry.so").touch()
        text = lab_setup.example_plugstack(self.example, build, Path("/run/sphase/x"))
        self.assertEqual(text, f"optional {build}/spank/phase_telemetry.so"
                               f" recorder={build}/spank/recorder/sphase-recorder"
                               " store=/run/sphase/x/spool-sphase run=/run/sphase/x/run-sphase\n")

    def test_without_a_plugin_there_is_nothing_to_load(self):
        self.assertEqual(lab_setup.example_plugstack(self.example, None, self.dir), "")
        self.assertEqual(lab_setup.example_plugstack(self.example, self.dir, self.dir), "")


class Names(unittest.TestCase):
    def test_a_name_that_could_be_mistaken_for_a_node_is_refused(self):
        for name in ("lab2", "Lab", "my-lab", "", "a b"):
            with self.assertRaisesRegex(LabError, "what is right"):
                Lab(name)

    def test_a_folder_that_is_not_a_labs_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "precious").touch()
            with self.assertRaisesRegex(LabError, "not a lab's folder"):
                Lab("labtest", dir=folder).up()
            self.assertTrue(Path(folder, "precious").exists())


class EndProcess(unittest.TestCase):
    def test_a_reused_pid_is_not_ended(self):
        lab_procs.end_process(os.getpid(), lab_procs.start_time(os.getpid()) - 1, limit_s=0.1)


class Cluster(unittest.TestCase):
    """One lab for all of these."""

    @classmethod
    def setUpClass(cls):
        cls.lab = Lab("labtest", conf=["Licenses=grow:5"])
        cls.lab.up()
        cls.addClassCleanup(cls.lab.down, purge=True)

    def test_all_nodes_are_idle_when_up_returns_and_up_again_says_so(self):
        self.assertFalse(self.lab.up())
        status = self.lab.status()
        self.assertTrue(status["up"])
        self.assertEqual(list(status["nodes"]), ["labtest1", "labtest2", "labtest3", "labtest4"])

    def test_a_second_lab_of_the_same_name_is_refused_and_does_no_harm(self):
        job = self.lab.sbatch(USERS[0], ["--wrap", "sleep 60"])
        self.lab.wait_job(job, "RUNNING")
        namesake = Lab("labtest", dir="/tmp/sphase-lab-labtest-namesake")
        self.addCleanup(shutil.rmtree, namesake.dir, ignore_errors=True)
        with self.assertRaisesRegex(LabError, "another lab named 'labtest' is up"):
            namesake.up()
        namesake.down()
        self.assertEqual(self.lab.job(job)["JobState"], "RUNNING")
        self.lab.run(["scancel", job], check=True)

    def test_both_users_run_steps_in_their_own_homes(self):
        for user in USERS:
            done = self.lab.run_as(user, ["srun", "-N2", "bash", "-c", "id -un; pwd"])
            self.assertEqual(done.rc, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.split()),
                             sorted([user, str(self.lab.home(user))] * 2))

    def test_the_clean_environment_holds_nothing_of_the_callers(self):
        os.environ["SPHASE_LEAK"] = "1"
        self.addCleanup(os.environ.pop, "SPHASE_LEAK")
        self.assertNotIn("SPHASE_LEAK", self.lab.run_as(USERS[0], ["env"]).stdout)

    def test_a_batch_job_is_in_the_accounting_database(self):
        job = self.lab.sbatch(USERS[0], ["-p", "half", "--wrap", "srun true"])
        self.assertEqual(self.lab.wait_job(job, "COMPLETED"), "COMPLETED")

        def recorded():
            out = self.lab.run(["sacct", "-j", job, "-X", "-n", "-P", "-o", "User,Account,State"])
            return out.stdout.strip() == f"{USERS[0]}|lab|COMPLETED"

        self.lab.wait_for(recorded, 20, "sacct to show the job")

    def test_a_running_job_can_be_shrunk(self):
        job = self.lab.sbatch(USERS[1], ["-N3", "--wrap", "sleep 60"])
        self.lab.wait_job(job, "RUNNING")
        self.lab.run(["scontrol", "update", f"JobId={job}", "NumNodes=1"], check=True)
        self.lab.wait_for(lambda: self.lab.job(job).get("NumNodes") == "1", 10, "the shrink")
        self.lab.run(["scancel", job], check=True)
        self.lab.wait_job(job, "CANCELLED")

    def test_a_job_that_takes_more_memory_than_it_asked_for_is_ended(self):
        done = self.lab.run_as(USERS[0], ["srun", "--mem=50", "python3", "-c",
                                          "bytearray(200_000_000)"])
        self.assertNotEqual(done.rc, 0)
        self.assertIn("Out Of Memory", done.stderr)

    def test_jobs_run_on_after_their_slurmd_and_slurmctld_were_restarted(self):
        job = self.lab.sbatch(USERS[0], ["-w", "labtest4", "--wrap", "sleep 4"])
        self.lab.wait_job(job, "RUNNING")
        self.lab.slurmd_restart("labtest4")
        self.lab.slurmctld_restart()
        self.assertEqual(self.lab.wait_job(job, {"COMPLETED", "FAILED", "NODE_FAIL"}), "COMPLETED")

    def test_conf_reaches_slurm(self):
        self.assertIn("grow", self.lab.run(["scontrol", "show", "licenses"]).stdout)

    def test_ordinary_users_cannot_read_the_keys(self):
        for secret in ("munge-key/munge.key", "etc/slurmdbd.conf", "mariadb/socket"):
            done = self.lab.run_as(USERS[0], ["cat", self.lab.dir / secret])
            self.assertIn("Permission denied", done.stderr)


class Lives(unittest.TestCase):
    def test_two_labs_live_side_by_side_and_leave_nothing(self):
        labs = [Lab(name, nodes=1) for name in ("labtesta", "labtestb")]
        for lab in labs:
            self.addCleanup(lab.down, purge=True)
            lab.up()
        jobs = [lab.sbatch(USERS[0], ["--wrap", "trap '' TERM; sleep 300 & wait; wait"])
                for lab in labs]
        for lab, job in zip(labs, jobs):
            lab.wait_job(job, "RUNNING")
        labs[0].down()
        self.assertEqual(processes_of(labs[0]), set())
        self.assertEqual(lab_cgroups.trees(labs[0].nodes), [])
        self.assertFalse(labs[0].down(), "down twice is fine")
        self.assertEqual(labs[1].job(jobs[1])["JobState"], "RUNNING")
        labs[1].down(purge=True)
        self.assertEqual(processes_of(labs[1]), set())
        self.assertEqual(lab_cgroups.trees(labs[1].nodes), [])
        self.assertFalse(labs[1].dir.exists())

    def test_down_ends_the_jobs_of_a_lab_whose_slurmctld_died(self):
        lab = Lab("labtestc", nodes=1)
        self.addCleanup(lab.down, purge=True)
        lab.up()
        lab.wait_job(lab.sbatch(USERS[0], ["--wrap", "sleep 300"]), "RUNNING")
        lab_procs.end_process(*lab._daemons.known()["slurmctld"], limit_s=0)
        self.assertFalse(lab.is_up())
        lab.down()
        self.assertEqual(processes_of(lab), set())
        self.assertEqual(lab_cgroups.trees(lab.nodes), [])

    def test_a_daemon_that_fails_is_named_with_its_log_and_the_rest_is_cleaned_up(self):
        lab = Lab("labtestd", nodes=1, conf=["SelectType=select/nonsense"])
        self.addCleanup(lab.down, purge=True)
        with self.assertRaisesRegex(LabError, "(?s)slurmctld.*select/nonsense"):
            lab.up()
        self.assertEqual(processes_of(lab), set())


if __name__ == "__main__":
    unittest.main()
