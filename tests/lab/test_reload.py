"""slurmctld while everything about the job_submit plugin changes under it: reconfigured and the
plugin unloaded and loaded 1000 times, the advice table replaced, cut, deleted, its disk full. It
accepts every job, never restarts, and does not grow."""

import contextlib
import os
import re
import subprocess
import threading
import time
import unittest
from pathlib import Path

from telemetry import TelemetryCase, U1

RELOADS = 1000
SUBMITTERS = 2

# slurmctld 22.05 drops connections that are open when it reads its configuration anew; it does so
# without any job_submit plugin too (tried: 300 reconfigurations with job_submit/logging alone).
CONNECTION_LOST = ("Zero Bytes were transmitted", "Connection reset", "missing socket error",
                   "Connection refused", "Socket timed out")


class Reload(TelemetryCase):
    lab_name = "reload"
    lab_nodes = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # One malloc arena: else each of slurmctld's threads may open one of its own, a megabyte or
        # more each (seen: 3 to 12 MiB from one run to the next), and nothing else could be seen.
        cls.lab.slurmctld_restart({"MALLOC_ARENA_MAX": "1"})
        cls.lab.wait_idle()

    def setUp(self):
        self.stop = threading.Event()
        self.refused = []
        self.submitted = self.lost = 0
        self.folder = self.lab.dir / "state-sphase"
        self.lab.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none", self.folder],
                     check=True)
        self.addCleanup(self.lab.run, ["umount", "--lazy", self.folder], check=True)
        uid = self.lab.run(["id", "-u", U1], check=True).stdout.strip()
        self.lines = "".join(f"{uid}/p{i} nodes=1 memory_mib=320 peak_mib=250 time_s=900\n"
                             for i in range(50))

    @property
    def table(self):
        return self.folder / "advice.cdb"

    def slurmctld(self):
        return self.lab.status()["daemons"]["slurmctld"]["pid"]

    def rss_kib(self):
        status = Path(f"/proc/{self.slurmctld()}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

    def submit(self, *how):
        done = self.lab.run_as(U1, ["sbatch", *how, "--phase-resize=apply", "--mem=400",
                                    f"--phase-telemetry=profile=p{self.submitted % 50}"],
                               input="#!/bin/bash\nhostname\n")
        self.submitted += 1
        if done.rc and any(words in done.stderr for words in CONNECTION_LOST):
            self.lost += 1
        elif done.rc:
            self.refused.append(done.stderr)

    def keep_submitting(self):
        """Dry runs through the whole hook; every tenth is a real job."""
        while not self.stop.is_set():
            self.submit("--hold" if self.submitted % 10 == 0 else "--test-only")

    def make_table(self):
        subprocess.run([self.lab.build / "tests" / "job_submit" / "write_table", self.table],
                       input=self.lines, text=True, capture_output=True, check=False)

    def torment_table(self):
        """Replaced, cut in place, deleted, its disk full; in turn."""
        turn = 0
        full = self.folder / "full"
        while not self.stop.is_set():
            turn += 1
            with contextlib.suppress(OSError):
                if turn % 4 == 1:
                    os.truncate(self.table, turn * 37 % 4096)
                elif turn % 4 == 2:
                    self.table.unlink()
                elif turn % 4 == 3:
                    full.write_bytes(b"x" * 65536)
            self.make_table()
            full.unlink(missing_ok=True)
            self.make_table()
            time.sleep(0.005)

    def reload(self, count):
        """Reconfigures `count` times; every second time with and without the plugin in turn, so that
        slurmctld unloads and loads it."""
        for i in range(count):
            if i % 2 == 0:
                self.lab.set_conf(f"JobSubmitPlugins=logging{',phase_resize' if i % 4 else ''}")
            done = self.lab.run(["scontrol", "reconfigure"])
            self.assertEqual(done.rc, 0, done.stderr)
            if i % 100 == 99:
                self.lab.run(["scancel", "--user", U1])

    def size_after(self, submissions):
        for _ in range(submissions):
            self.submit("--test-only")
        return self.rss_kib()

    def test_a_thousand_reloads(self):
        pid = self.slurmctld()
        threads = [threading.Thread(target=self.keep_submitting) for _ in range(SUBMITTERS)]
        threads.append(threading.Thread(target=self.torment_table))
        for thread in threads:
            thread.start()
        try:
            self.reload(RELOADS // 5)
            warm_kib = self.rss_kib()
            self.reload(RELOADS - RELOADS // 5)
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        # Under load slurmctld's size goes up and down by several MiB; what it is afterwards counts.
        end_kib = self.size_after(300)
        later_kib = self.size_after(300)
        print(f"{self.submitted} submissions, {self.lost} connections lost; slurmctld {warm_kib} KiB"
              f" after {RELOADS // 5} reloads, {end_kib} KiB after {RELOADS} and 300 submissions,"
              f" {later_kib} KiB after 300 more")
        self.assertEqual(self.refused, [])
        self.assertGreater(self.submitted - self.lost, 100)
        self.assertEqual(self.slurmctld(), pid)
        # slurmctld itself grows in this, with its jobs and with every configuration that it reads.
        self.assertLess(end_kib, warm_kib + 4096)
        self.assertLess(later_kib, end_kib + 512)


if __name__ == "__main__":
    unittest.main()
