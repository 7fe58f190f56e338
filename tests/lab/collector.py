"""The collector of a lab: `sphase-collector serve`, and `sphase-collector node` for each node, as real
daemons that a test may kill."""

import configparser
import json
import shlex
import signal

from lab import REPO
from lab_procs import free_ports, wait_for
from telemetry import build_dir


class Collector:
    """`serve` and the shippers of a lab. Their logs are log/serve.log and log/ship-NODE.log."""

    def __init__(self, lab, *, host="127.0.0.1", conf=(), options=(), serve_prefix=(),
                 ship_prefix=()):
        """`options`: of serve. The prefixes: words before the command lines."""
        self.lab = lab
        self.serve_prefix, self.ship_prefix = serve_prefix, ship_prefix
        self.port = free_ports(1)[0]
        self.options = options
        self.database = lab.dir / "state-sphase" / "cluster.db"
        self._running = {}
        self._conf = [f"Collector={host}:{self.port}", f"CollectorAddress={host}",
                      f"MungeSocket={lab.dir}/munge/socket", "TrustedUsers=root",
                      "WatchInterval=1", *conf]
        with lab.sphase_conf.open("a", encoding="utf-8") as file:
            file.write("\n".join(["", *self._conf, ""]))

    def _unit_command(self, what, conf=None):
        """ExecStart of an example systemd unit, with this lab's paths."""
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.read(REPO / "slurm-conf-examples" / f"sphase-collector-{what}.service")
        here = {"/usr/sbin/sphase-collector": build_dir() / "collector" / "sphase-collector",
                "/etc/slurm/sphase.conf": conf or self.lab.sphase_conf}
        return [here.get(word, word) for word in shlex.split(unit["Service"]["ExecStart"])]

    def _start(self, name, command):
        with self.lab.log(name).open("a", encoding="utf-8") as log:
            self._running[name] = self.lab.popen_as(None, command, stdout=log, stderr=log)

    def serve(self):
        self._start("serve", [*self.serve_prefix, *self._unit_command("serve"), "--db",
                              self.database, *self.options])

    def ship(self, node, *options, conf=None):
        self._start(f"ship-{node}", [*self.ship_prefix, *self._unit_command("node", conf),
                                     "--node-db", self.lab.node_db(node), "--run-dir",
                                     self.lab.dir / "run-sphase", *options])

    def start(self):
        self.serve()
        for node in self.lab.nodes:
            self.ship(node)

    def process(self, name):
        """The subprocess.Popen of "serve" or "ship-NODE"."""
        return self._running[name]

    def kill(self, name):
        """SIGKILL, and waits until it is gone."""
        self._running[name].kill()
        self._running[name].wait(timeout=20)

    def stop(self, name):
        """SIGTERM; its exit code."""
        self._running[name].send_signal(signal.SIGTERM)
        return self._running[name].wait(timeout=30)

    def stop_all(self):
        for process in self._running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            process.wait(timeout=30)

    def log(self, name):
        return self.lab.log(name).read_text(errors="replace")

    # --- what it has --------------------------------------------------------------------------

    def sphase(self, *words):
        return self.lab.run([build_dir() / "cli" / "sphase", *words, "--db", self.database])

    def report(self, job_id):
        """The first start of a job as `sphase report --json` tells it; None: not known yet."""
        done = self.sphase("report", str(job_id), "--json")
        return json.loads(done.stdout)["starts"][0] if done.rc == 0 else None

    def rows(self, table, job_id):
        """Rows of a job as `sphase export` tells them."""
        done = self.sphase("export", str(job_id), "--table", table)
        return [json.loads(line) for line in done.stdout.splitlines()] if done.rc == 0 else []

    def count(self, table):
        """How many rows there are of all jobs; 0 while there is no database."""
        done = self.sphase("export", "--table", table)
        return done.stdout.count("\n") if done.rc == 0 else 0

    def wait_ended(self, job_id, runs, limit_s=30):
        """Until so many runs of a job have come with their ends."""
        wait_for(lambda: sum(row["end_ns"] is not None for row in self.rows("run", job_id)) >= runs,
                 limit_s, f"{runs} ended runs of job {job_id} at the collector", 0.2)
