"""Nothing that was recorded is lost on its way to the collector, and nothing comes twice: whatever is
killed, with a full disk, and over a network that breaks."""

import contextlib
import json
import os
import random
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from collector import Collector
from lab import REPO
from telemetry import ON, TelemetryCase, U1, build_dir, recorders, wait_for

TABLES = ("run", "task", "sample", "phase", "value", "attribute", "notice", "counter")
KILLS = 100

# Phases, values and attributes from each of its tasks, for so long or until there is a file "stop".
LOAD = """
import itertools, os, sys, time
sys.path.insert(0, sys.argv[2])
import sphase
end = time.monotonic() + float(sys.argv[1])
with sphase.phase("outer"):
    for turn in itertools.count():
        with sphase.phase(f"inner{turn % 7}"):
            sphase.value("residual", 1 / (turn + 1))
            if turn % 50 == 0:
                sphase.attr("turn", str(turn))
        if time.monotonic() > end or os.path.exists(sys.argv[2] + "/stop"):
            break
        time.sleep(0.004)
"""


def exported(database):
    """Every row of a cluster.db, whatever its run is numbered there: table -> set of rows."""
    tables = {}
    for table in TABLES:
        done = subprocess.run([build_dir() / "cli" / "sphase", "export", "--table", table, "--db",
                               database], check=True, capture_output=True)
        rows = [{key: value for key, value in json.loads(line).items() if key != "run_id"}
                for line in done.stdout.splitlines()]
        tables[table] = sorted(json.dumps(row, sort_keys=True) for row in rows)
    return tables


class ShipCase(TelemetryCase):
    def recorded(self):
        """The same of all node.db files together, as files."""
        with tempfile.TemporaryDirectory() as folder:
            merged = Path(folder) / "cluster.db"
            self.lab.run([build_dir() / "collector" / "sphase-collector", "merge",
                          self.lab.dir / "spool-sphase", "--no-records", "--db", merged],
                         check=True)
            return exported(merged)

    def assert_all_there(self, limit_s=90):
        """Once the nodes are quiet: exactly the rows of their files, each once."""
        expected = self.recorded()

        def same():
            return exported(self.collector.database) == expected

        try:
            wait_for(same, limit_s, "all rows", 1)
        except Exception:  # says what is missing
            found = exported(self.collector.database)
            for table in TABLES:
                lost = set(expected[table]) - set(found[table])
                more = set(found[table]) - set(expected[table])
                twice = len(found[table]) - len(set(found[table]))
                print(f"{table}: {len(expected[table])} rows, {len(lost)} lost, {len(more)} not in"
                      f" the files, {twice} twice", *list(lost)[:2], *list(more)[:2], sep="\n  ")
            for name in ("serve", *(f"ship-{node}" for node in self.lab.nodes)):
                print(f"{name}:", self.collector.log(name)[-1500:])
            raise
        print({table: len(rows) for table, rows in expected.items()})

    def wait_no_recorder(self):
        program = self.lab.build / "spank" / "recorder" / "sphase-recorder"
        wait_for(lambda: not recorders(program), 60, "the recorders to end", 0.2)

    def start_load(self, seconds, *options):
        """A job step that marks on every node; ends by itself."""
        folder = self.lab.dir / "load"
        folder.mkdir(exist_ok=True)
        (folder / "sphase.py").write_bytes((REPO / "marker" / "sphase.py").read_bytes())
        env = {**self.lab.env(U1), "SPHASE_LIB": str(self.lab.build / "marker" / "libsphase.so")}
        return self.lab.popen_as(
            U1, ["srun", ON, *options, "python3", "-c", LOAD, str(seconds), folder], env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Killed(ShipCase):
    lab_name = "crash"
    lab_nodes = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.collector = Collector(cls.lab)
        cls.collector.start()
        cls.addClassCleanup(cls.collector.stop_all)

    def end_load(self, load):
        (self.lab.dir / "load" / "stop").touch()
        try:
            load.wait(timeout=30)
        except subprocess.TimeoutExpired:  # srun may wait for a slurmctld that was killed meanwhile
            load.kill()
            load.wait(timeout=10)
            self.lab.run(["scancel", f"--user={U1}"])

    def kill_one(self, choice):
        victim = choice.choices(["serve", *(f"ship-{node}" for node in self.lab.nodes)],
                                [2, 1, 1])[0]
        self.collector.kill(victim)
        time.sleep(choice.uniform(0, 0.1))
        if victim == "serve":
            self.collector.serve()
        else:
            self.collector.ship(victim.removeprefix("ship-"))
        return victim

    def test_a_hundred_kills_under_load_lose_nothing_and_double_nothing(self):
        seed = int.from_bytes(os.urandom(4), "big")
        print("seed", seed)
        choice = random.Random(seed)
        load = self.start_load(300, "-N2", "--ntasks-per-node=2", "--overlap", "--mem=100")
        killed = {}
        for turn in range(KILLS):
            time.sleep(choice.uniform(0, 0.5))
            if turn % 20 == 10:
                self.lab.slurmctld_kill()
                killed["slurmctld"] = killed.get("slurmctld", 0) + 1
                continue
            if turn % 5 == 0:  # short steps, so that runs begin and end meanwhile
                self.lab.popen_as(U1, ["srun", ON, "-N1", "--mem=50", "true"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait(60)
            victim = self.kill_one(choice)
            killed[victim] = killed.get(victim, 0) + 1
        print(killed)
        self.end_load(load)
        self.wait_no_recorder()
        self.assert_all_there()
        for name in ("serve", *(f"ship-{node}" for node in self.lab.nodes)):
            self.assertEqual(self.collector.stop(name), 0, self.collector.log(name)[-2000:])


class FullDisk(ShipCase):
    lab_name = "fulldisk"
    lab_nodes = 1

    def test_a_full_disk_is_said_and_everything_comes_when_there_is_room(self):
        self.collector = Collector(self.lab)
        small = self.lab.dir / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1536k", "none", small], check=True)
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.collector.database = small / "cluster.db"
        self.collector.start()
        self.addCleanup(self.collector.stop_all)
        load = self.start_load(12, "-N1", "-n4", "--overlap", "--mem=100")
        wait_for(lambda: "nothing can be stored" in self.collector.log("serve"), 60,
                 "serve to say that its disk is full")
        self.assertEqual(load.wait(timeout=60), 0)
        self.wait_no_recorder()
        self.assertIsNone(self.collector.process("serve").poll())
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        self.assert_all_there(limit_s=120)


class CutNetwork(ShipCase):
    lab_name = "cut"
    lab_nodes = 1
    OURS, THEIRS = "sphase-serve", "sphase-ship"  # namespaces

    @contextlib.contextmanager
    def network(self):
        """Two network namespaces, with one cable between them. Yields what pulls and plugs it."""
        def ip(*words):
            subprocess.run(["ip", *words], check=True)

        def plug(state):
            ip("-n", self.OURS, "link", "set", "cable", state)

        with contextlib.ExitStack() as undo:
            for space in (self.OURS, self.THEIRS):
                ip("netns", "add", space)
                undo.callback(ip, "netns", "del", space)
            ip("-n", self.OURS, "link", "add", "cable", "type", "veth", "peer", "name", "cable",
               "netns", self.THEIRS)
            for space, address in ((self.OURS, "192.0.2.1/30"), (self.THEIRS, "192.0.2.2/30")):
                ip("-n", space, "addr", "add", address, "dev", "cable")
                ip("-n", space, "link", "set", "cable", "up")
            yield plug

    def test_a_cut_network_delays_and_loses_nothing(self):
        with self.network() as plug:
            self.collector = Collector(
                self.lab, host="192.0.2.1", options=["--no-records"],
                serve_prefix=("ip", "netns", "exec", self.OURS),
                ship_prefix=("ip", "netns", "exec", self.THEIRS))
            self.collector.start()
            try:
                self.cut_and_count(plug)
            finally:
                self.collector.stop_all()

    def cut_and_count(self, plug):
        load = self.start_load(25, "-N1", "-n2", "--overlap", "--mem=100")
        wait_for(lambda: self.collector.count("value"), 30, "the first rows")
        for _ in range(3):
            plug("down")
            before = self.collector.count("value")
            time.sleep(2)  # the length of the cut, not a wait for something
            plug("up")
            wait_for(lambda: self.collector.count("value") > before, 60, "rows after the cut")
        # A collector that went while nobody could hear of it.
        plug("down")
        self.collector.kill("serve")
        self.collector.serve()
        plug("up")
        self.assertEqual(load.wait(timeout=60), 0)
        self.wait_no_recorder()
        self.assert_all_there(limit_s=120)
        self.assertIsNone(self.collector.process(f"ship-{self.lab.nodes[0]}").poll())


if __name__ == "__main__":
    unittest.main()
