"""No user reads, writes or disturbs the telemetry of another."""

import contextlib
import os
import pwd
import sqlite3
import subprocess
import unittest

from telemetry import MIB, ON, U1, U2, TelemetryCase, recorders, truths

HOSTILE_S = 3


class Privacy(TelemetryCase):
    lab_name = "privacy"

    def program_pid(self):
        """The living recorder of this lab; there is one at a time where this is asked."""
        program = self.lab.build / "spank" / "recorder" / "sphase-recorder"

        def ours():
            return [pid for pid in recorders(program) if self.store.sockets() and any(
                str(self.lab.dir) in os.readlink(f"/proc/{pid}/fd/{fd}")
                for fd in os.listdir(f"/proc/{pid}/fd"))]

        [pid] = self.lab.wait_for(ours, 10, "the recorder to have node.db open")
        return pid

    @contextlib.contextmanager
    def waiting_job(self):
        """A job of U1 with open phases, as long as the block runs."""
        home = self.lab.home(U1)
        name = self.new_name()
        ready, go = home / f"{name}.ready", home / f"{name}.go"
        with self.lab.popen_as(U1, ["srun", "-J", name, ON, self.program("shapes"), "gate", ready,
                                    go, 0], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL) as job:
            try:
                self.lab.wait_for(ready.exists, 20, "the job to run")
                yield self.id_of(name)
            finally:
                go.touch()
                self.assertEqual(job.wait(30), 0)

    def assertDenied(self, user, command):
        done = self.lab.run_as(user, command)
        self.assertNotEqual(done.rc, 0, command)
        self.assertRegex(done.stderr + done.stdout, "Permission denied|not permitted", command)

    def test_neither_the_other_user_nor_the_owner_reads_or_writes_node_db(self):
        """It holds everybody's runs, so it is root's alone."""
        self.runs(self.srun(["true"], ON).id, 1)
        db = self.lab.node_db(self.lab.nodes[0])
        for user in (U1, U2):
            for path in (db, f"{db}-wal", f"{db}.lock"):
                self.assertDenied(user, ["cat", path])
                self.assertDenied(user, ["dd", "if=/dev/zero", f"of={path}", "count=1",
                                         "conv=notrunc"])
            self.assertDenied(user, ["ls", db.parent])
            self.assertDenied(user, ["touch", db.parent / "mine"])

    def test_notes_are_roots(self):
        plugstack = self.lab.plugstack_text()
        self.addCleanup(self.lab.set_plugstack, plugstack)
        self.lab.set_plugstack(plugstack.replace("recorder=/", "recorder=/nowhere/"))
        job = self.srun(["true"], ON)
        self.assertEqual([code for code, _ in self.store.notices(job.id)], ["not-active"])
        for user in (U1, U2):
            self.assertDenied(user, ["ls", self.store.run_dir / "notes"])
            for note in (self.store.run_dir / "notes").glob("*.note"):
                self.assertDenied(user, ["cat", note])
            self.assertDenied(user, ["touch", self.store.run_dir / "mine"])

    def test_the_socket_lets_only_the_owner_in(self):
        with self.waiting_job():
            [socket] = self.store.sockets()
            kept_out = self.lab.run_as(U2, [self.program("hostile"), "knock", socket])
            self.assertEqual(kept_out.stdout, "kept out: Permission denied\n")
            status = socket.stat()
            self.assertEqual((status.st_uid, status.st_mode & 0o777),
                             (pwd.getpwnam(U1).pw_uid, 0o600))
            self.assertDenied(U2, ["rm", "-f", socket])

    def test_the_recorder_shows_its_ring_to_nobody_and_takes_no_signals(self):
        with self.waiting_job():
            pid = self.program_pid()
            for user in (U1, U2):
                for what in ("fd", "map_files"):
                    self.assertDenied(user, ["ls", f"/proc/{pid}/{what}"])
                for what in ("mem", "environ", "maps"):
                    self.assertDenied(user, ["cat", f"/proc/{pid}/{what}"])
                self.assertDenied(user, ["kill", "-KILL", pid])
            self.assertEqual([name for name in os.listdir("/dev/shm") if "sphase" in name], [])

    # --- harm -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def harm(self, *arguments):
        """A hostile job of U1 on the node, and its id; it has ended when the block is left."""
        name = self.new_name()
        with self.lab.popen_as(U1, ["srun", "-J", name, ON, self.program("hostile"), *arguments],
                               stdout=subprocess.PIPE, text=True) as job:
            self.lab.wait_for(lambda: self.lab.run(["squeue", "-h", "-t", "R", "-n", name]).stdout,
                              20, "the hostile job to run")
            yield self.id_of(name)
            self.said = job.communicate(timeout=60)[0]
            self.assertEqual(job.returncode, 0, self.said)

    def assertNoHarm(self, *arguments):
        """While U1 does harm, U2's job on the same node is recorded as ever, and U1's recorder
        lives to the end."""
        with self.harm(*arguments) as hostile:
            job = self.srun([self.program("workload"), "-m", 32, "-w", 2], ON, "-c2", user=U2)
        self.assertEqual(job.rc, 0, job.stderr)
        [ours] = self.runs(job.id, 1)
        self.assertEqual({phase["path"] for phase in ours.phases},
                         {"setup", "solve", "solve/iterate", "write"})
        self.assertEqual({value["name"] for value in ours.values}, {"residual"})
        self.assertEqual([attribute["key"] for attribute in ours.attributes], ["threads"])
        self.assertEqual((ours["markers_invalid"], ours["markers_dropped"]), (0, 0))
        self.assertEqual(ours["markers"], 2 * len(ours.phases) + 3 + 1)
        self.assertEqual(ours["uid"], pwd.getpwnam(U2).pw_uid)
        for truth in truths(job.stdout).values():
            path = "solve/iterate" if truth.phase == "iterate" else truth.phase
            self.assertAlmostEqual(ours.phase(path, truth.number)["cpu_time_ns"], truth.cpu_ns,
                                   delta=max(truth.cpu_ns / 100, 2 * ours["tick_ns"]))
        [theirs] = self.runs(hostile, 1)
        self.assertEqual(theirs["end_reason"], "step ended")
        self.assertNotIn("recorder-lost", self.codes(hostile))
        self.assertLess(theirs["recorder_rss_bytes"], 128 * MIB)
        self.assertLess(theirs["recorder_cpu_ns"], HOSTILE_S * 1_000_000_000 / 2)
        with contextlib.closing(sqlite3.connect(self.lab.node_db(self.lab.nodes[0]))) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        return theirs

    def test_random_bytes_over_the_whole_ring(self):
        theirs = self.assertNoHarm("scribble", HOSTILE_S)
        self.assertGreaterEqual(theirs["markers_dropped"], 0, "it can write any number there")
        self.assertEqual(self.said, "joined\n")

    def test_markers_in_the_name_of_others(self):
        theirs = self.assertNoHarm("forge", HOSTILE_S)
        self.assertEqual(theirs.phases, [])
        self.assertGreater(theirs["markers_invalid"], 1000)
        self.assertEqual(theirs["markers_invalid"], theirs["markers"])
        self.assertEqual(self.said, "joined\n")

    def test_a_flood_of_its_own_markers_leaves_room_for_everybody(self):
        plugstack = self.lab.plugstack_text()
        self.addCleanup(self.lab.set_plugstack, plugstack)
        self.lab.set_plugstack(plugstack.replace("max_bytes=1G", "max_bytes=64M"))
        earlier = self.srun([self.program("shapes"), "nested"], ON, user=U2)
        before = self.runs(earlier.id, 1)[0]
        theirs = self.assertNoHarm("flood", HOSTILE_S)
        self.assertIn("limit", {notice["code"] for notice in theirs.notices})
        self.assertGreater(theirs["samples_dropped"], 0)
        after = self.runs(earlier.id, 1)[0]
        self.assertEqual((after.phases, after.samples), (before.phases, before.samples))
        self.assertLess(self.lab.node_db(self.lab.nodes[0]).stat().st_size, 16 * MIB)

    def test_a_crowd_at_the_door(self):
        theirs = self.assertNoHarm("crowd", 300)
        self.assertEqual(theirs.phases, [])
        self.assertRegex(self.said, r"^taken in: \d+ of 300\n$")


if __name__ == "__main__":
    unittest.main()
