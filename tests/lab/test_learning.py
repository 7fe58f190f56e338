"""The loop closed on a real cluster: run, record, learn, ask better. `sphase-collector watch` runs
as a daemon beside slurmctld; an ordinary user submits the same script again and again, and nobody
touches anything."""

import configparser
import json
import shlex
import signal
import statistics
import unittest

from lab import REPO
from telemetry import TelemetryCase, U1, build_dir, wait_for

APPLY = "--phase-resize=apply"

# Asks for four nodes and 1500 MiB; uses one node and about 200 MiB, for five seconds.
OVERSIZED = """#!/bin/bash
#SBATCH --job-name=oversized --nodes=4 --mem=1500 --time=10
{program} -s 500 -c 4500 -t 1 -m 200 -w 0
"""

# Only `solve` uses all four nodes.
PHASES = """#!/bin/bash
#SBATCH --job-name=phases --nodes=4 --ntasks-per-node=1 --mem=1500 --time=10
sphase run stage -- {program} -s 1000 -c 0 -w 0
sphase run solve -- srun {program} -s 0 -c 1500 -t 1 -m 150 -w 0
sphase run post -- {program} -s 800 -c 0 -w 0
"""


class Learning(TelemetryCase):
    lab_name = "learning"
    lab_nodes = 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The site records every job: nobody has to ask.
        plugstack = (cls.lab.dir / "etc" / "plugstack.conf").read_text()
        cls.lab.set_plugstack(plugstack.replace("default=off", "default=on"))
        with cls.lab.log("watch").open("w", encoding="utf-8") as log:
            cls.watch = cls.lab.popen_as(None, [*cls.unit_command(), "--interval", "1s",
                                                 "--records-interval", "1s"],
                                         stderr=log)
        cls.addClassCleanup(cls.end_watch)

    @classmethod
    def unit_command(cls):
        """ExecStart of the example systemd unit, with this lab's paths."""
        unit = configparser.ConfigParser(interpolation=None)
        unit.read(REPO / "slurm-conf-examples" / "sphase-collector-watch.service")
        here = {"/usr/sbin/sphase-collector": build_dir() / "collector" / "sphase-collector",
                "/var/spool/sphase": cls.lab.dir / "spool-sphase",
                "/etc/slurm/sphase.conf": cls.lab.sphase_conf}
        return [here.get(word, word) for word in shlex.split(unit["Service"]["ExecStart"])]

    @classmethod
    def end_watch(cls):
        if cls.watch.poll() is None:
            cls.watch.send_signal(signal.SIGTERM)
        cls.watch.wait(timeout=30)

    @property
    def site_db(self):
        return self.lab.dir / "state-sphase" / "cluster.db"

    def sphase(self, *words, check=True):
        done = self.lab.run([self.lab.build / "cli" / "sphase", *words, "--db", self.site_db])
        if check:
            self.assertEqual(done.rc, 0, done.stderr)
        return done.stdout

    def turn(self, script, *options):
        """Submits, waits for the end, and until the learner has seen it. (job as a dict, message)."""
        self.assertIsNone(self.watch.poll(), self.lab.log("watch").read_text())
        done = self.lab.run_as(U1, ["sbatch", "--parsable", *options], check=True,
                               input=script.format(program=self.program("workload")))
        job_id = int(done.stdout)
        self.lab.wait_job(job_id, {"COMPLETED", "OUT_OF_MEMORY", "FAILED"}, limit_s=60)
        wait_for(lambda: self.learned(job_id), 30, f"job {job_id} to be learned")
        return {**self.lab.job(job_id), "id": job_id}, done.stderr

    def learned(self, job_id):
        done = self.lab.run(["sqlite3", "-readonly", self.site_db,
                             f"SELECT 1 FROM observed_job WHERE job_id = {job_id}"])
        return done.stdout.strip() == "1"

    def held(self, job_id):
        """(node-seconds, GB-hours, runtime of its script in s) of a job, as the report has them."""
        data = json.loads(self.sphase("report", str(job_id), "--json"))
        [start] = data["starts"]
        [job] = [row for row in start["rows"] if row["kind"] == "job"]
        [batch] = [row for row in start["rows"] if row["kind"] == "step"]
        memory = sum(node["memory_allocated_bytes"] * node["time_s"] for node in start["nodes"])
        return job["allocated_node_s"], memory / 1e9 / 3600, batch["time_ns"] / 1e9

    def test_hands_off(self):
        jobs, messages = zip(*[self.turn(OVERSIZED, APPLY) for _ in range(6)])
        print("\n".join(message.strip() for message in messages))
        self.assertIn("nothing was learned about it yet", messages[0])
        self.assertRegex(messages[5], r"sphase: nodes 4 -> 1, memory 1\.5G -> \d+M \(peak \d+M in \d "
                                      r"runs\); --phase-resize=off keeps yours")
        held = [self.held(job["id"]) for job in jobs]
        first, last = held[0], held[5]
        print("first, last: {:.1f}, {:.1f} node-seconds; {:.2g}, {:.2g} GB-hours; {:.2f}, {:.2f} s"
              .format(*(value for pair in zip(first, last) for value in pair)))
        self.assertEqual(jobs[5]["NumNodes"], "1")
        self.assertLess(last[0], 0.6 * first[0])
        self.assertLess(last[1], 0.6 * first[1])
        # One run may meet a busy host: three before and three after the change are compared.
        before, after = (statistics.median(run[2] for run in half) for half in (held[:3], held[3:]))
        self.assertLess(abs(after - before), 0.05 * before)
        why = self.sphase("why", str(jobs[5]["id"]))
        print(why)
        for words in ("nodes", "memory", "1500", "apply"):
            self.assertIn(words, why)

    def test_an_ordinary_user_asks_why(self):
        """Who cannot read the site's database still sees what slurmctld shows of the job."""
        done = self.lab.run_as(U1, ["sbatch", "--parsable", "--hold", APPLY, "--mem=300"],
                               input="#!/bin/bash\nhostname\n", check=True)
        job = done.stdout.strip()
        asked = self.lab.run_as(U1, [self.lab.build / "cli" / "sphase", "why", job])
        self.lab.run(["scancel", job])
        self.assertEqual(asked.rc, 0, asked.stderr)
        self.assertIn("300 MiB per node", asked.stdout)
        self.assertIn("slurmctld was asked instead", asked.stderr)

    def test_phases_become_a_plan(self):
        jobs, messages = zip(*[self.turn(PHASES, APPLY) for _ in range(4)])
        self.assertEqual(jobs[3]["NumNodes"], "4")
        self.assertIn("memory 1.5G ->", messages[3])
        uid = self.lab.run(["id", "-u", U1]).stdout.strip()
        [profile] = [row for row in json.loads(self.sphase("profile", "list", "--json"))["profiles"]
                     if row["job_name"] == "phases"]
        self.assertTrue(profile["profile"].startswith(f"{uid}/~"))
        plan = json.loads(self.sphase("plan", profile["profile"]))
        self.assertEqual([(phase["path"], phase["nodes"]) for phase in plan["phases"]],
                         [("stage", 1), ("solve", 4), ("post", 1)])
        print(self.sphase("advice", profile["profile"]))
        # What would happen now, asked by the user, with the script before sbatch's options.
        script = self.lab.home(U1) / "phases.sh"
        script.write_text(PHASES.format(program=self.program("workload")))
        done = self.lab.run_as(U1, [self.lab.build / "cli" / "sphase", "dry-run", script, APPLY])
        print(done.stdout)
        self.assertEqual(done.rc, 0, done.stderr)
        self.assertIn("memory 1.5G -> ", done.stdout)
        self.assertIn("the job gets a plan of 3 phases", done.stdout)

    def test_a_kill_for_memory_raises_the_next_request(self):
        script = OVERSIZED.replace("oversized", "hungry").replace("--nodes=4 --mem=1500",
                                                                  "--nodes=1 --mem=150")
        first, _ = self.turn(script, APPLY)
        self.assertEqual(first["JobState"], "OUT_OF_MEMORY")
        second, message = self.turn(script, APPLY)
        print(message)
        self.assertRegex(message, r"memory 150M -> \d+M")
        self.assertEqual(second["JobState"], "COMPLETED")
        self.assertGreaterEqual(int(second["MinMemoryNode"].rstrip("M")), 250)


if __name__ == "__main__":
    unittest.main()
