"""What the collector keeps of the scheduler's records, compared with `sacct -D` field by field: jobs
that were shrunk, grown, requeued, suspended, an array, a het job, one cancelled while it waited; and
what is kept while a daemon is away or does not show everything."""

import json
import re
import signal
import time
import unittest

from lab import LabError
from telemetry import U1, U2, TelemetryCase, report_tools

SACCT = ("JobID,JobIDRaw,JobName,Submit,Eligible,Start,End,Suspended,State,ExitCode,NNodes,NodeList,"
         "AllocTRES,ReqTRES,ReqMem,TimelimitRaw,UID,User,Account,Partition,QOS").split(",")
LONG = "exec sleep 600"


def seconds_of(text):
    """sacct's "[D-]HH:MM:SS"."""
    days, _, clock = text.rpartition("-")
    hours, minutes, seconds = map(int, clock.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def time_of(text):
    return int(text) if text.isdigit() else None  # Unknown, None


def tres_of(text):
    return dict(pair.split("=") for pair in text.split(",") if pair)


def mib_of(text):
    value, unit = re.fullmatch(r"([\d.]+)([MGT]?)", text).groups()
    return round(float(value) * {"": 1, "M": 1, "G": 1024, "T": 1 << 20}[unit])


def whole_s(time_ns):
    return None if time_ns is None else time_ns // 1_000_000_000


class RecordsCase(TelemetryCase):
    lab_nodes = 4
    lab_conf = ["SchedulerParameters+=permit_job_expansion"]

    @classmethod
    def look(cls, *options):
        """One look at both daemons; the warnings that came of it."""
        collector, _ = report_tools(cls.lab)
        done = cls.lab.run([collector, "merge", "--all-jobs", cls.lab.dir / "spool-sphase", "--db",
                            cls.lab.dir / "cluster.db", "--json", *options])
        return json.loads(done.stdout)["warnings"]

    @classmethod
    def starts(cls, job, *options):
        """Every start of a job as `sphase report --json` has it, by restart count."""
        _, sphase = report_tools(cls.lab)
        done = cls.lab.run([sphase, "report", job, "--json", "--all", "--db",
                            cls.lab.dir / "cluster.db", *options], check=True)
        return sorted(json.loads(done.stdout)["starts"],
                      key=lambda start: (start["job"]["job_id"], start["job"]["restart_count"]))

    @classmethod
    def submit(cls, *options, script=LONG):
        return cls.lab.sbatch(U1, [*options, "-o", "/dev/null", "--wrap", script])

    @classmethod
    def running(cls, *options):
        job = cls.submit(*options)
        cls.lab.wait_job(job, "RUNNING")
        return job

    @classmethod
    def wait_second(cls, job):
        """Until the job has run for a second: an interval within one second has no length."""
        start = int(cls.lab.run(["squeue", "-h", "-j", job, "-o", "%S"], check=True,
                                env={"SLURM_TIME_FORMAT": "%s"}).stdout)
        cls.lab.wait_for(lambda: time.time() > start + 1, 5, "a second to pass")

    @classmethod
    def update(cls, job, *changes):
        """scontrol update, again for a while: right after a change Slurm may be busy with it."""
        cls.lab.wait_for(lambda: cls.lab.run(["scontrol", "update", f"JobId={job}",
                                              *changes]).rc == 0, 10, f"{changes} of {job}")

    @classmethod
    def sacct(cls, *jobs):
        """Rows of `sacct -D`, one per interval, as dicts."""
        done = cls.lab.run(["sacct", "-D", "-X", "-n", "--parsable2", "-j",
                            ",".join(map(str, jobs)), "--format=" + ",".join(SACCT)],
                           env={"SLURM_TIME_FORMAT": "%s"}, check=True)
        rows = [dict(zip(SACCT, line.split("|"))) for line in done.stdout.splitlines()]
        return sorted(rows, key=lambda row: (int(row["JobIDRaw"]), int(row["Submit"]),
                                             row["State"] != "RESIZING"))

    @classmethod
    def wait_accounted(cls, *jobs):
        """Waits until slurmdbd has the end of all rows of these jobs."""
        def ended():
            rows = cls.sacct(*jobs)
            # The helper that gave its nodes away never gets one: see records.h.
            return all(row["End"].isdigit() or row["NodeList"] == "None assigned" for row in rows)

        cls.lab.wait_for(ended, 20, "slurmdbd to have every end")


class Records(RecordsCase):
    lab_name = "records"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab = cls.lab
        cls.waiting = cls.submit("--hold")
        cls.array = cls.submit("--array=1-3%1", script="true")
        cls.het = lab.sbatch(U1, ["-N1", ":", "-N1", "-o", "/dev/null", "--wrap", "true"])
        cls.shrunk = cls.running("-N3", "--mem-per-cpu=100", "--time=7")
        cls.grown = cls.running("-N1")
        cls.requeued = cls.running("-N1", "--requeue")
        cls.suspended = cls.running("-N1")
        cls.look()
        cls.update(cls.shrunk, "NumNodes=1")
        for _ in range(3):
            cls.wait_second(cls.grown)
            cls.grow()
            if cls.growth_is_accounted():
                break
            # On a busy host slurmdbd was seen to end the first row as if the job had ended: then
            # there is nothing to compare with, and another job is grown.
            print(f"slurmdbd wrote the growth of job {cls.grown} as", cls.sacct(cls.grown))
            lab.run(["scancel", cls.grown, cls.helper])
            cls.grown = cls.running("-N1")
            cls.look()
        lab.run(["scontrol", "suspend", cls.suspended], check=True)
        lab.run(["scontrol", "requeue", cls.requeued], check=True)
        # slurmd refuses a start in the second in which the one before was ended.
        ended = time.time()
        lab.wait_for(lambda: lab.job(cls.requeued).get("Reason") == "BeginTime", 20, "the requeue")
        lab.wait_for(lambda: time.time() > ended + 2, 5, "two seconds to pass")
        cls.look()
        cls.update(cls.requeued, "StartTime=now")
        lab.wait_job(cls.requeued, "RUNNING")
        cls.restarts = int(lab.job(cls.requeued)["Restarts"])
        # So that it was suspended for a whole second at least.
        lab.wait_for(lambda: int(cls.sacct(cls.suspended)[0]["Suspended"][-2:]) >= 2, 10, "2 s")
        lab.run(["scontrol", "resume", cls.suspended], check=True)
        cls.look()
        cls.jobs = [cls.waiting, cls.array, cls.het, cls.shrunk, cls.grown, cls.helper,
                    cls.requeued, cls.suspended]
        lab.run(["scancel", *cls.jobs])
        for job in cls.jobs:
            lab.wait_job(job, {"CANCELLED", "COMPLETED"})
        cls.wait_accounted(*cls.jobs)
        cls.look()

    @classmethod
    def grow(cls):
        """Grows a job by a helper that gives it its node."""
        done = cls.lab.run_as(U1, ["salloc", "--no-shell", "-N1", "--exclusive", "-J", "helper",
                                   f"--dependency=expand:{cls.grown}"])
        cls.helper = int(re.search(r"job allocation (\d+)", done.stderr)[1])
        # Within one second slurmdbd would write both of the helper's rows as one.
        cls.wait_second(cls.helper)
        cls.update(cls.helper, "NumNodes=0")
        cls.lab.wait_for(lambda: cls.lab.job(cls.grown).get("NumNodes") == "2", 10, "the growth")

    @classmethod
    def growth_is_accounted(cls):
        def as_two_intervals():
            rows = cls.sacct(cls.grown)
            return ([row["State"] for row in rows] == ["RESIZING", "RUNNING"]
                    and [row["NNodes"] for row in rows] == ["1", "2"])

        try:
            cls.lab.wait_for(as_two_intervals, 10, "slurmdbd to have the growth")
        except LabError:
            return False
        return True

    # --- field by field -----------------------------------------------------------------------

    def rows_by_start(self, job):
        """sacct's rows of each start of each job: those after RESIZING belong to the same one."""
        starts = []
        for row in self.sacct(job):
            resized = starts and starts[-1][-1]["State"] == "RESIZING"
            if resized and starts[-1][-1]["JobIDRaw"] == row["JobIDRaw"]:
                starts[-1].append(row)
            else:
                starts.append([row])
        return starts

    def compare_start(self, start, rows):
        job, first, last = start["job"], rows[0], rows[-1]
        array = job["array_job_id"] and f"{job['array_job_id']}_{job['array_task_id']}"
        het = job["het_job_id"] and f"{job['het_job_id']}+{job['het_offset']}"
        requested = tres_of(first["ReqTRES"])
        status = job["exit_code"]
        ours = {
            "JobID": array or het or str(job["job_id"]), "JobIDRaw": str(job["job_id"]),
            "JobName": job["name"], "Eligible": job["eligible_time_s"],
            "Start": job["start_time_s"], "End": job["end_time_s"],
            "Suspended": job["suspended_s"], "State": job["state"],
            "ExitCode": f"{status >> 8}:{status & 127}", "TimelimitRaw": job["time_limit_s"] // 60,
            "UID": str(job["uid"]), "User": job["user"], "Account": job["account"],
            "Partition": job["partition"], "QOS": job["qos"],
            "ReqTRES": (job["requested_nodes"], job["requested_cpus"])}
        theirs = {name: last[name] for name in ours}
        if job["state"] == "CANCELLED":
            # slurmctld has the signal (15, or 9 for a job that was suspended), slurmdbd has 0.
            self.assertIn(ours.pop("ExitCode"), ("0:0", "0:15", "0:9"))
            del theirs["ExitCode"]
        theirs |= {
            # Each row after a resize or a requeue has a time of its own here: ours is the start's.
            "Eligible": time_of(first["Eligible"]), "Start": time_of(first["Start"]),
            "End": time_of(last["End"]),
            # "CANCELLED by UID": who cancelled is not kept.
            "State": last["State"].split()[0],
            # Counts anew in each row of a resized job.
            "Suspended": sum(seconds_of(row["Suspended"]) for row in rows),
            "TimelimitRaw": int(last["TimelimitRaw"]),
            # Overwritten at a resize: the request is that of the first row.
            "ReqTRES": (int(requested["node"]), int(requested["cpu"]))}
        if job["state"] == "CANCELLED" and last["NodeList"] == "None assigned":
            theirs["Start"] = None  # sacct may show the time at which it was cancelled
        if last["NodeList"] == "None assigned" and len(rows) > 1:
            # The helper that gave its node away: sacct never shows an end, ours is when it did.
            theirs["End"] = time_of(first["End"])
        self.assertEqual(ours, theirs)
        # sacct shows the sum over all CPUs; ours is as it was asked for, by the CPU or by the node.
        amount, _, per = job["requested_memory"].split()
        count = int(requested["cpu" if per == "CPU" else "node"])
        self.assertEqual(mib_of(amount) * count, mib_of(first["ReqMem"]))

    def compare_allocations(self, start, rows):
        held = [row for row in rows if row["NodeList"] != "None assigned"]
        ours = [(whole_s(one["begin_ns"]), whole_s(one["end_ns"]), one["expression"],
                 one["node_count"], one["cpus"], one["memory_bytes"] >> 20)
                for one in start["allocations"]]
        theirs = []
        for row in held:
            tres = tres_of(row["AllocTRES"])
            # After a resize sacct shows the job's own start in each row, and the time of the resize
            # as Submit; ours is when the interval began.
            begin = max(int(row["Start"]), int(row["Submit"]))
            theirs.append((begin, time_of(row["End"]), row["NodeList"], int(row["NNodes"]),
                           int(tres["cpu"]), mib_of(tres["mem"])))
        self.assertEqual(ours, theirs)
        for one, row in zip(start["allocations"], held):
            self.assertEqual(len(one["nodes"]), int(row["NNodes"]))

    def test_every_field_is_that_of_sacct(self):
        for job in self.jobs:
            with self.subTest(job=job):
                starts, rows = self.starts(job), self.rows_by_start(job)
                self.assertEqual(len(starts), len(rows), rows)
                for start, of_start in zip(starts, rows):
                    self.compare_start(start, of_start)
                    self.compare_allocations(start, of_start)
                    # sacct shows the time of the requeue; ours is when the job was submitted.
                    first = next(row for row in self.sacct(job)
                                 if row["JobIDRaw"] == of_start[0]["JobIDRaw"])
                    self.assertEqual(start["job"]["submit_time_s"], int(first["Submit"]))
                    self.assertEqual(start["job"]["records"], "slurmctld+slurmdbd")

    # --- what sacct does not have -------------------------------------------------------------

    def test_the_request_before_a_resize_is_kept(self):
        [start] = self.starts(self.shrunk)
        self.assertEqual((start["job"]["requested_nodes"], start["job"]["requested_cpus"],
                          start["job"]["requested_memory"], start["job"]["requested_time_limit_s"]),
                         (3, 3, "100M per CPU", 420))
        self.assertEqual([one["node_count"] for one in start["allocations"]], [3, 1])

    def test_both_a_helper_and_its_parent_name_each_other(self):
        [parent], [helper] = self.starts(self.grown), self.starts(self.helper)
        self.assertEqual(helper["job"]["helper_of"], self.grown)
        self.assertEqual(parent["job"]["helpers"], [self.helper])
        self.assertEqual([one["node_count"] for one in parent["allocations"]], [1, 2])

    def test_a_requeued_job_is_counted_as_slurmctld_counts(self):
        starts = self.starts(self.requeued)
        self.assertEqual([start["job"]["restart_count"] for start in starts],
                         list(range(self.restarts + 1)))
        self.assertEqual(starts[0]["job"]["state"], "REQUEUED")
        self.assertEqual([wait["reason"] for wait in starts[1]["waits"]], ["BeginTime"])

    def test_a_suspension_is_an_interval(self):
        [start] = self.starts(self.suspended)
        [suspension] = start["suspensions"]
        length = whole_s(suspension["end_ns"]) - whole_s(suspension["begin_ns"])
        self.assertEqual(length, start["job"]["suspended_s"])
        self.assertGreaterEqual(length, 2)
        # What was not running is not held against the job.
        ran = start["job"]["end_time_s"] - start["job"]["start_time_s"] - length
        self.assertAlmostEqual(start["nodes"][0]["time_s"], ran, delta=1.1)

    def test_a_job_that_never_ran_has_the_reason_and_no_start(self):
        [start] = self.starts(self.waiting)
        self.assertEqual(start["job"]["state"], "CANCELLED")
        self.assertIsNone(start["job"]["start_time_s"])
        [wait] = start["waits"]
        self.assertEqual(wait["reason"], "JobHeldUser")
        self.assertEqual(whole_s(wait["end_ns"]), start["job"]["end_time_s"])
        self.assertEqual(start["allocations"], [])

    def test_components_and_tasks_have_their_own_records(self):
        self.assertEqual([(start["job"]["array_job_id"], start["job"]["array_task_id"],
                           start["job"]["array_tasks"])
                          for start in sorted(self.starts(self.array),
                                              key=lambda start: start["job"]["array_task_id"])],
                         [(self.array, task, None) for task in (1, 2, 3)])
        self.assertEqual([(start["job"]["het_job_id"], start["job"]["het_offset"])
                          for start in self.starts(self.het)], [(self.het, 0), (self.het, 1)])

    def test_looking_again_changes_nothing(self):
        before = [self.starts(job) for job in self.jobs]
        self.look()
        self.assertEqual([self.starts(job) for job in self.jobs], before)


class Away(RecordsCase):
    """A daemon is away, or does not show everything."""
    lab_name = "recordsaway"
    lab_conf = [*RecordsCase.lab_conf, "MessageTimeout=3"]

    def test_tasks_that_wait_as_one_record_can_be_asked_for(self):
        array = self.submit("--array=1-9%1", "--begin=now+1hour")
        self.look()
        [start] = self.starts(f"{array}_4")
        self.assertEqual((start["job"]["array_job_id"], start["job"]["array_tasks"]),
                         (array, "1-9%1"))
        self.lab.run(["scancel", array])

    def test_a_resize_while_slurmdbd_is_away_is_kept_and_corrected(self):
        job = self.running("-N3")
        self.look()
        self.wait_second(job)
        self.addCleanup(self.lab.slurmdbd_restart)
        self.lab.slurmdbd_stop()
        self.update(job, "NumNodes=2")
        said = " ".join(self.look())
        self.assertIn("slurmdbd could not be asked", said)
        kept = self.starts(job)[0]["allocations"]
        self.assertEqual([one["node_count"] for one in kept], [3, 2])
        self.assertIsNone(kept[1]["end_ns"])
        self.lab.slurmdbd_restart()
        self.lab.wait_for(lambda: len(self.sacct(job)) == 2, 30, "slurmdbd to hear of the resize")
        self.assertNotIn("could not be asked", " ".join(self.look()))
        again = self.starts(job)[0]
        self.assertEqual([one["begin_ns"] for one in again["allocations"]],
                         [one["begin_ns"] for one in kept])
        self.assertEqual([one["state"] for one in again["allocations"]], ["RESIZING", "RUNNING"])
        self.assertEqual(again["job"]["requested_nodes"], 3)
        self.lab.run(["scancel", job])

    def test_what_ended_while_slurmctld_was_away_is_asked_again(self):
        job = self.running("-N1")
        self.look()
        self.lab.run(["scancel", job])
        self.wait_accounted(job)
        self.lab.slurmctld_stop()
        said = " ".join(self.look())
        self.assertIn("slurmctld could not be asked", said)
        self.assertEqual(self.starts(job)[0]["job"]["state"], "CANCELLED")
        self.lab.slurmctld_restart()
        self.assertNotIn("could not be asked", " ".join(self.look()))

    def test_a_watch_says_once_that_slurmdbd_is_away_and_once_that_it_is_back(self):
        collector, _ = report_tools(self.lab)
        log = self.lab.log("watch")
        job = self.running("-N1")
        with log.open("w", encoding="utf-8") as out:
            watch = self.lab.popen_as(None, [
                collector, "watch", self.lab.dir / "spool-sphase", "--all-jobs", "--db",
                self.lab.dir / "watched.db", "--conf", self.lab.sphase_conf, "--interval", "1s",
                "--records-interval", "1s"], stderr=out, stdout=out)
        try:
            self.addCleanup(self.lab.slurmdbd_restart)
            self.lab.slurmdbd_stop()
            self.lab.wait_for(lambda: "slurmdbd could not be asked" in log.read_text(), 20, "a line")
            self.lab.run(["scancel", job])
            self.lab.wait_job(job, "CANCELLED")
            self.lab.slurmdbd_restart()
            self.lab.wait_for(lambda: "no longer: slurmdbd" in log.read_text(), 40, "its end")
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(timeout=30)
        said = [line for line in log.read_text().splitlines() if "slurmdbd" in line]
        self.assertEqual(len(said), 2, said)

    def test_private_data_is_said_to_who_is_not_shown_everything(self):
        self.lab.set_conf("PrivateData=jobs")
        self.lab.slurmctld_restart()
        job = self.running("-N1")
        collector, sphase = report_tools(self.lab)
        for user, sees in ((U1, True), (U2, False)):
            with self.subTest(user=user):
                db = self.lab.home(user) / "mine.db"
                done = self.lab.run_as(user, [collector, "merge", "--all-jobs", self.lab.home(user),
                                              "--db", db])
                self.assertEqual(done.stderr.count("PrivateData=jobs"), 1, done.stderr)
                known = self.lab.run_as(user, [sphase, "report", job, "--db", db, "--json"]).rc == 0
                self.assertEqual(known, sees)
        self.lab.run(["scancel", job])


if __name__ == "__main__":
    unittest.main()
