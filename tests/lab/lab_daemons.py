"""The daemons of a lab: how each is started, when it is ready, and which process it is."""

import json
import subprocess
from pathlib import Path

from lab_procs import (LabError, end_process, port_listens, reap, socket_answers, start_time,
                       wait_for)

MARIADBD_OPTIONS = (
    "--no-defaults", "--user=root", "--skip-networking", "--skip-log-bin",
    "--performance-schema=off", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
    "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900",
)


def argv(name, lab_dir):
    """The command line of a daemon; a name that is no daemon's is a node's. All stay in the
    foreground, so that the pid is known."""
    return {
        "munged": ["munged", "--foreground", f"--socket={lab_dir}/munge/socket",
                   f"--key-file={lab_dir}/munge-key/munge.key",
                   f"--pid-file={lab_dir}/run/munged.pid",
                   f"--seed-file={lab_dir}/munge-key/munged.seed",
                   f"--log-file={lab_dir}/log/munged.log"],
        "mariadbd": ["mariadbd", *MARIADBD_OPTIONS, f"--datadir={lab_dir}/mariadb/data",
                     f"--socket={lab_dir}/mariadb/socket", f"--pid-file={lab_dir}/mariadb/pid",
                     f"--log-error={lab_dir}/log/mariadbd.log"],
        "slurmdbd": ["slurmdbd", "-D"],
        "slurmctld": ["slurmctld", "-D"],
    }.get(name, ["slurmd", "-D", "-N", name])


def is_ready(name, lab_dir, ports):
    """Whether the daemon takes requests."""
    folder = {"munged": "munge", "mariadbd": "mariadb"}.get(name)
    if folder:
        return socket_answers(lab_dir / folder / "socket")
    return port_listens(ports[name])


class Daemons:
    """The daemons of one lab, remembered in `record` (JSON: name → [pid, start time])."""

    def __init__(self, record, log_dir):
        self._record = Path(record)
        self._log_dir = Path(log_dir)

    def known(self):
        try:
            return json.loads(self._record.read_text())
        except (OSError, ValueError):
            return {}

    def _remember(self, name, entry):
        known = self.known()
        known.pop(name, None)
        if entry:
            known[name] = entry
        aside = self._record.with_suffix(".new")
        aside.write_text(json.dumps(known, indent=1))
        aside.rename(self._record)

    def alive(self, name):
        pid, started = self.known().get(name, (0, 0))
        return bool(pid) and start_time(pid) == started

    def start(self, name, argv, env):
        """Starts `argv` in a session of its own; what it prints goes to log/NAME.out."""
        with open(self._log_dir / f"{name}.out", "ab") as out:
            child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=out, cwd=self._log_dir, umask=0o022,
                                     start_new_session=True)
        child.returncode = 0  # It outlives us on purpose: no ResourceWarning, no wait.
        self._remember(name, [child.pid, start_time(child.pid) or 0])

    def wait_ready(self, name, ready, limit_s):
        """Polls `ready` while the daemon lives; LabError with the end of its log otherwise."""

        def ready_or_dead():
            pid = self.known()[name][0]
            reap(pid)
            return ready() or not self.alive(name)

        try:
            wait_for(ready_or_dead, limit_s, f"{name} to get ready", step_s=0.02)
        except LabError as error:
            raise LabError(f"{error}\n{self.log_tail(name)}") from None
        if not self.alive(name):
            raise LabError(f"{name} ended at once\n{self.log_tail(name)}")

    def stop(self, name, limit_s=10.0):
        entry = self.known().get(name)
        if entry:
            end_process(entry[0], entry[1], limit_s)
            self._remember(name, None)

    def log_tail(self, name, lines=20):
        """The last lines of what the daemon wrote, under a headline."""
        for path in (self._log_dir / f"{name}.log", self._log_dir / f"{name}.out"):
            if path.exists() and path.stat().st_size:
                tail = path.read_text(errors="replace").splitlines()[-lines:]
                return "\n".join([f"--- the end of {path}:", *tail])
        return f"--- {name} wrote no log"
