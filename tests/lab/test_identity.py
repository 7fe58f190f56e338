"""Which run is which: requeued, array, heterogeneous and resized jobs, equal names, many nodes."""

import contextlib
import sqlite3
import unittest

from telemetry import ON, U1, U2, TelemetryCase


class Identity(TelemetryCase):
    lab_name = "identity"
    lab_nodes = 3

    def started(self, job_id, step):
        """Waits until a step of the job runs."""
        def runs():
            return f"{job_id}.{step} " in self.lab.run(["squeue", "-s", "-h", "-o", "%i "]).stdout

        self.lab.wait_for(runs, 30, f"step {job_id}.{step}")

    def test_a_requeued_job_has_a_run_for_each_start(self):
        job = self.lab.sbatch(U1, [ON, "--requeue", "--wrap",
                                   'srun true; [ "$SLURM_RESTART_COUNT" ] || srun sleep 60'])
        self.started(job, 1)
        self.lab.run(["scontrol", "requeue", job], check=True)
        self.lab.wait_job(job, "PENDING")
        # Slurm holds a requeued job back for two minutes, until its credential has expired.
        self.lab.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=True)
        self.lab.wait_job(job, "COMPLETED", limit_s=60)
        found = [(run["restart_count"], run["step"]) for run in self.runs(job, 5)]
        self.assertEqual(sorted(found), [(0, "0"), (0, "1"), (0, "batch"), (1, "0"), (1, "batch")])
        starts = [run["start_ns"] for run in self.store.runs(job, "batch")]
        self.assertLess(starts[0], starts[1])
        shown = self.report(job, "--all").starts
        self.assertEqual(sorted(start["job"]["restart_count"] for start in shown), [0, 1])

    def test_tasks_of_an_array_know_their_array(self):
        job = self.lab.sbatch(U1, [ON, "--array=1-2", "--wrap", "srun true"])

        def ids():
            out = self.lab.run(["squeue", "-h", "-t", "CD", "-r", "-j", job, "-o", "%A %K"]).stdout
            found = {int(task): int(raw) for raw, task in map(str.split, out.splitlines())}
            return found if len(found) == 2 else None

        for task, raw in self.lab.wait_for(ids, 30, "both tasks of the array").items():
            for run in self.runs(raw, 2):
                self.assertEqual((run["array_job_id"], run["array_task_id"]), (job, task))
                self.assertIsNone(run["het_job_id"])

    def test_a_job_that_is_no_array_has_no_array_id(self):
        [run] = self.runs(self.srun(["true"], ON).id, 1)
        self.assertEqual((run["array_job_id"], run["array_task_id"], run["het_job_id"],
                          run["het_offset"]), (None, None, None, None))

    def test_components_of_a_het_job_know_their_place(self):
        for command in (["salloc", ON, "-N1", ":", ON, "-N1", "srun", "--het-group=0,1", "true"],
                        ["srun", ON, "-N1", ":", ON, "-N1", "true"]):
            with self.subTest(command=command):
                before = self.srun(["true"], f"{ON}=off").id
                done = self.lab.run_as(U1, command)
                self.assertEqual(done.rc, 0, done.stderr)
                leader = before + 1
                runs = [run for raw in (leader, leader + 1) for run in self.runs(raw, 1)]
                self.assertEqual([(run["job_id"], run["het_job_id"], run["het_offset"])
                                  for run in runs], [(leader, leader, 0), (leader + 1, leader, 1)])
                self.assertNotEqual(runs[0]["node"], runs[1]["node"])

    def test_a_resized_job_has_steps_of_both_sizes(self):
        job = self.lab.sbatch(U1, [
            ON, "-N3", "--wrap",
            'srun true; srun -N3 sleep 60 & wait; '
            'unset SLURM_NPROCS SLURM_NTASKS SLURM_TASKS_PER_NODE; '
            'export SLURM_JOB_NUM_NODES=1 SLURM_NNODES=1 SLURM_JOB_NODELIST=$SLURMD_NODENAME '
            'SLURM_NODELIST=$SLURMD_NODENAME SLURM_JOB_CPUS_PER_NODE=1; srun -N1 true'])
        self.started(job, 1)
        self.lab.run(["scontrol", "update", f"JobId={job}", "NumNodes=1"], check=True)
        self.lab.wait_for(lambda: self.lab.job(job).get("NumNodes") == "1", 10, "the shrink")
        self.lab.run(["scancel", f"{job}.1"])
        self.lab.wait_job(job, {"COMPLETED", "FAILED"})
        runs = self.runs(job, 8, limit_s=30)
        sizes = {}
        for run in runs:
            sizes.setdefault(run["step"], []).append(run["step_nodes"])
        self.assertEqual(sizes, {"batch": [1], "0": [3] * 3, "1": [3] * 3, "2": [1]})
        self.assertEqual({run["restart_count"] for run in runs}, {0})

    def test_databases_of_all_nodes_merge_and_merging_again_changes_nothing(self):
        job = self.srun(["true"], ON, "-N3")
        self.runs(job.id, 3)
        self.assertEqual(self.report(job.id).row("step", "step 0")["node_count"], 3)
        before = self.contents()
        self.merge()
        self.assertEqual(self.contents(), before)

    def contents(self):
        """{table: rows} of what cluster.db holds about runs."""
        with contextlib.closing(sqlite3.connect(self.cluster_db)) as db:
            return {table: sorted(map(repr, db.execute(f"SELECT * FROM {table}")))
                    for table in ("run", "task", "sample", "phase", "value", "attribute",
                                  "notice")}

    def test_jobs_of_one_name_stay_apart(self):
        jobs = [self.lab.sbatch(user, [ON, "-J", "twin", "--wrap", "srun true"])
                for user in (U1, U2, U1)]
        for job in jobs:
            self.lab.wait_job(job, "COMPLETED")
        uids = []
        for job in jobs:
            runs = self.runs(job, 2)
            self.assertEqual({run["job_name"] for run in runs if run["step"] == "batch"}, {"twin"})
            uids.append({run["uid"] for run in runs})
        self.assertEqual(uids[0], uids[2])
        self.assertNotEqual(uids[0], uids[1])


if __name__ == "__main__":
    unittest.main()
