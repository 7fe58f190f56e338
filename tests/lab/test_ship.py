"""What the nodes record arrives at the collector, as it comes and all of it, whatever is killed."""

import json
import re
import time
import unittest

from collector import Collector
from telemetry import ON, TelemetryCase, U1, U2, build_dir, read_runs, wait_for


class Ship(TelemetryCase):
    lab_name = "ship"
    lab_nodes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.collector = Collector(cls.lab)
        cls.collector.start()
        cls.addClassCleanup(cls.collector.stop_all)

    def test_a_phase_is_seen_within_five_seconds_while_its_job_runs(self):
        script = "#!/bin/bash\nsphase begin early\nsleep 1\nsphase end\nsphase begin late\nsleep 12\n"
        job = self.lab.sbatch(U1, [ON, "--job-name=live"], input=script)
        self.lab.wait_job(job, {"RUNNING"})
        begun = time.monotonic()

        def early():
            report = self.collector.report(job)
            return report and [row for row in report["rows"] if row["name"] == "early"]

        wait_for(early, 15, "the phase to be seen", 0.1)
        took = time.monotonic() - begun
        print(f"seen {took:.2f} s after the job began, {took - 1:.2f} s after the phase ended")
        self.assertLess(took, 1 + 5)
        self.assertEqual(self.lab.job(job)["JobState"], "RUNNING")
        self.lab.run(["scancel", str(job)])

    def test_every_row_of_the_nodes_is_there_once(self):
        job = self.srun([self.program("workload"), "-s", "300", "-c", "300", "-m", "10"],
                        ON, "-N2", "--ntasks-per-node=1")
        self.collector.wait_ended(job.id, 2)
        for node in self.lab.nodes:
            for run in read_runs(self.lab.node_db(node), job.id):
                for name, (table, _) in run.TABLES.items():
                    mine = [row for row in self.collector.rows(table, job.id)
                            if row["node"] == node]
                    self.assertEqual(len(mine), len(getattr(run, name)), (node, table))

    def ask(self, user, *words):
        """A command of sphase on a login node, where sphase.conf names the collector."""
        return self.lab.run_as(user, [build_dir() / "cli" / "sphase", *words])

    def test_the_collector_answers_as_its_file_does_and_to_the_owner_alone(self):
        job = self.srun([self.program("workload"), "-s", "100", "-c", "200", "-m", "10"], ON)
        self.collector.wait_ended(job.id, 1)
        number = str(job.id)
        for words in (("report", number, "--instances"), ("report", number, "--csv"),
                      ("report", number, "--html", "-"), ("export", number, "--table", "phase"),
                      ("export", number, "--table", "sample", "--format", "csv")):
            file = self.collector.sphase(*words)
            self.assertEqual(file.rc, 0, file.stderr)
            for user in (U1, None):
                asked = self.ask(user, *words)
                self.assertEqual((asked.rc, asked.stdout), (0, file.stdout), (user, words))
            other = self.ask(U2, *words)
            unknown = self.ask(U2, *(word.replace(number, "99999") for word in words))
            self.assertEqual((other.rc, other.stdout), (1, ""), words)
            self.assertEqual(other.stderr, unknown.stderr.replace("99999", number), words)
        jobs = json.loads(self.ask(U1, "jobs", "--json").stdout)["jobs"]
        self.assertIn(job.id, [line["job_id"] for line in jobs])
        jobs = json.loads(self.ask(U2, "jobs", "--json").stdout)["jobs"]
        self.assertEqual([line for line in jobs if line["user"] != U2], [])
        self.assertEqual(self.ask(U2, "export", "--table", "run").stdout, "")
        wrong = self.ask(U1, "report", "nonsense")
        self.assertEqual(wrong.rc, 2, wrong.stderr)

    def test_why_a_node_recorded_nothing_is_known_too(self):
        plugstack = (self.lab.dir / "etc" / "plugstack.conf").read_text()
        self.addCleanup(self.lab.set_plugstack, plugstack)
        self.lab.set_plugstack(re.sub(r"node_db=\S+", "node_db=/proc/nowhere/node.db", plugstack))
        job = self.srun(["true"], ON)
        wait_for(lambda: self.collector.report(job.id), 30, "the job to be known", 0.2)
        [notice] = self.collector.report(job.id)["notices"]
        self.assertEqual(notice["code"], "store-failed", notice)
        self.assertIn("/proc", notice["text"])


class Advice(TelemetryCase):
    lab_name = "shipadvice"
    lab_nodes = 1

    def test_the_advice_table_reaches_the_host_of_slurmctld(self):
        collector = Collector(self.lab, conf=["MinRuns=1"],
                              options=["--records-interval", "1"])
        collector.serve()
        self.addCleanup(collector.stop_all)
        # Another host has another file system.
        theirs, ours = self.lab.dir / "etc" / "their.conf", self.lab.dir / "their-advice.cdb"
        table = self.lab.dir / "state-sphase" / "advice.cdb"
        theirs.write_text(self.lab.sphase_conf.read_text().replace(str(table), str(ours)))
        collector.ship(self.lab.nodes[0], "--advice", conf=theirs)
        for profile in ("first", "second"):
            job = self.srun([self.program("workload"), "-s", "100", "-c", "1200", "-m", "10"],
                            f"{ON}=profile={profile}", "--mem=200")
            collector.wait_ended(job.id, 1)
            wait_for(lambda: profile.encode() in table.read_bytes(), 30, f"advice for {profile}")
            wait_for(lambda: ours.exists() and ours.read_bytes() == table.read_bytes(), 30,
                     "the same advice at the other host", 0.2)
        # Whoever breaks it gets a new one with the next news, and nothing is left beside it.
        self.assertEqual(list(ours.parent.glob("their-advice.cdb.*")), [])


if __name__ == "__main__":
    unittest.main()
