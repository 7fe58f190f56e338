#!/usr/bin/env python3
"""A private, real Slurm cluster in one folder, for tests and for trying things out.

Own munged, mariadbd, slurmdbd, slurmctld and one slurmd per node, all on free loopback ports and
UNIX sockets, so that labs with different names live side by side. Needs root (cgroups, job users).

    tests/lab/lab.py up                          four nodes lab1..lab4 in /tmp/sphase-lab-lab
    tests/lab/lab.py sh --user u1 -- srun -N2 hostname
    tests/lab/lab.py status
    tests/lab/lab.py down

In a test:

    with Lab("mytest", nodes=2) as lab:
        job = lab.sbatch("sphase_u1", ["-N1", "--wrap", "true"])
        lab.wait_job(job, {"COMPLETED"}, limit_s=20)
"""

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lab_cgroups
import lab_daemons
import lab_leftovers
import lab_procs
import lab_setup
from lab_daemons import Daemons
from lab_procs import LabError, wait_for
from lab_setup import USERS

__all__ = ["Lab", "LabError", "Result", "USERS", "wait_for"]

REPO = Path(__file__).resolve().parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A UNIX socket's address has 108 bytes (unix(7)); the longest of ours is DIR/mariadb/socket.
LONGEST_DIR = 80


class Result(NamedTuple):
    rc: int
    stdout: str
    stderr: str


class Lab:
    """One lab, living or not. Everything about it is in its folder, so any process may hold one."""

    def __init__(self, name="lab", *, dir=None, nodes=4, conf=(), cgroup_conf=(), build=None):
        """`conf`: "Key=Value" or "Key+=Value" lines for slurm.conf. `build`: a CMake build folder
        with the plugin and the command; default build/release of this checkout."""
        if not re.fullmatch(r"[a-z]([a-z0-9]*[a-z])?", name):
            raise LabError(f"lab name {name!r}: what is right is lower-case letters and digits that"
                           " begin and end with a letter (the nodes are NAME1, NAME2, …)")
        if not 1 <= nodes <= 64:
            raise LabError(f"{nodes} nodes: what is right is 1 to 64")
        self.name = name
        self.dir = Path(dir or f"/tmp/sphase-lab-{name}").resolve()
        self.conf = list(conf)
        self.cgroup_conf = list(cgroup_conf)
        self._wanted_build = Path(build).resolve() if build else REPO / "build" / "release"
        self._wanted_nodes = nodes
        self._daemons = Daemons(self.dir / "daemons.json", self.dir / "log")
        if len(str(self.dir)) > LONGEST_DIR:
            raise LabError(f"{self.dir} is too long for a lab's folder ({LONGEST_DIR} characters)")

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, kind, *_):
        self.down(purge=kind is None)

    # --- what it is ---------------------------------------------------------------------------

    def _state(self):
        """What `up` wrote about the lab in this folder; {} if it was never up."""
        try:
            return json.loads((self.dir / "lab.json").read_text())
        except (OSError, ValueError):
            return {}

    @property
    def nodes(self):
        """Node names, in order."""
        count = self._state().get("nodes", self._wanted_nodes)
        return [f"{self.name}{i + 1}" for i in range(count)]

    def hostlist(self):
        """The nodes as Slurm writes them: "lab[1-4]"."""
        return f"{self.name}[1-{len(self.nodes)}]" if len(self.nodes) > 1 else self.nodes[0]

    @property
    def slurm_conf(self):
        return self.dir / "etc" / "slurm.conf"

    @property
    def build(self):
        """The build folder as ordinary users reach it; None if there is none."""
        path = self._state().get("build")
        return Path(path) if path else None

    def home(self, user):
        return self.dir / "home" / user if user in USERS else Path("/root")

    def node_db(self, node):
        return self.dir / "spool-sphase" / node / "node.db"

    def log(self, name):
        """Path of the log of slurmctld, slurmdbd, munged, mariadbd or a node."""
        return self.dir / "log" / f"{name}.log"

    def is_up(self):
        return all(self._daemons.alive(name) for name in self._daemon_names())

    def status(self):
        """A dict for `status --json`."""
        up = self.is_up()
        nodes = self._node_states() if self._daemons.alive("slurmctld") else {}
        return {"name": self.name, "dir": str(self.dir), "up": up, "nodes": nodes,
                "slurm_conf": str(self.slurm_conf), "build": str(self.build or ""),
                "ports": self._state().get("ports", {}),
                "daemons": {name: {"pid": self._daemons.known().get(name, [None])[0],
                                   "alive": self._daemons.alive(name)}
                            for name in self._daemon_names()}}

    # --- using it -----------------------------------------------------------------------------

    def env(self, user=None):
        """A clean environment for commands that talk to this lab."""
        user = user or "root"
        path = f"{self.build}/cli:{PATH}" if self.build else PATH
        return {"PATH": path, "SLURM_CONF": str(self.slurm_conf), "LANG": "C.UTF-8",
                "HOME": str(self.home(user)), "USER": user, "LOGNAME": user, "SHELL": "/bin/bash",
                "TERM": os.environ.get("TERM", "dumb"), "SPHASE_LAB_DIR": str(self.dir)}

    def _as_user(self, user):
        """Arguments of subprocess that make the child this user's, in this user's home."""
        if user in (None, "root"):
            return {"env": self.env()}
        entry = pwd.getpwnam(user)
        return {"env": self.env(user), "user": entry.pw_uid, "group": entry.pw_gid,
                "extra_groups": [], "cwd": self.home(user)}

    def run_as(self, user, cmd, *, env=None, cwd=None, input=None, timeout=120, check=False):
        """Runs `cmd` as `user` and returns Result(rc, stdout, stderr). `env` adds variables."""
        options = self._as_user(user)
        options["env"].update(env or {})
        if cwd:
            options["cwd"] = cwd
        feed = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([str(word) for word in cmd], capture_output=True, text=True,
                              errors="replace", timeout=timeout, check=False, **feed, **options)
        if check and done.returncode:
            raise LabError(f"{cmd} ended with {done.returncode}: {done.stderr.strip()}")
        return Result(done.returncode, done.stdout, done.stderr)

    def run(self, cmd, **options):
        """`run_as` root."""
        return self.run_as(None, cmd, **options)

    def popen_as(self, user, cmd, **options):
        """A subprocess.Popen that runs as `user`; the caller ends it."""
        return subprocess.Popen([str(word) for word in cmd], **{**self._as_user(user), **options})

    def sbatch(self, user, args, **options):
        """Submits and returns the job id (int)."""
        done = self.run_as(user, ["sbatch", "--parsable", *args], check=True, **options)
        return int(done.stdout.split(";")[0])

    def job(self, job_id):
        """`scontrol show job` as a dict; {} if Slurm does not know the job (any more)."""
        done = self.run(["scontrol", "--oneliner", "show", "job", job_id])
        return dict(re.findall(r"(\S+?)=(\S*)", done.stdout)) if done.rc == 0 else {}

    def wait_job(self, job_id, states, limit_s=30):
        """Waits until the job's state is one of `states`, and returns it."""
        states = {states} if isinstance(states, str) else set(states)
        seen = []

        def there():
            state = self.job(job_id).get("JobState", "unknown")
            seen[:] = [state]
            return state if state in states else None

        try:
            return wait_for(there, limit_s, f"job {job_id} to be {'/'.join(sorted(states))}", 0.1)
        except LabError as error:
            raise LabError(f"{error}; it is {seen[0]}") from None

    wait_for = staticmethod(wait_for)

    def plugstack_text(self):
        return (self.dir / "etc" / "plugstack.conf").read_text()

    def set_plugstack(self, text):
        """For every srun, sbatch and slurmstepd from now on: each reads the file when it starts."""
        self._replace(self.dir / "etc" / "plugstack.conf", text)

    @property
    def sphase_conf(self):
        return self.dir / "etc" / "sphase.conf"

    def set_sphase_conf(self, text):
        """For slurmctld within a second, and for every program that starts from now on."""
        self._replace(self.sphase_conf, text)

    @staticmethod
    def _replace(path, text):
        aside = path.with_suffix(".new")
        aside.write_text(text)
        aside.chmod(0o644)
        aside.rename(path)

    def set_conf(self, *changes):
        """Changes slurm.conf like `conf`; the daemons see it after their restart."""
        self._replace(self.slurm_conf,
                      lab_setup.merge_conf(self.slurm_conf.read_text(), changes))

    def slurmd_restart(self, node, prefix=()):
        """Restarts the slurmd of `node`, as `prefix slurmd …`; undone by a restart without prefix."""
        self._daemons.stop(node)
        self._start(node, prefix)()
        self.wait_idle([node])

    def slurmctld_stop(self):
        self._daemons.stop("slurmctld")

    def slurmctld_kill(self):
        """SIGKILL, and starts it again."""
        pid = self._daemons.known()["slurmctld"][0]
        os.kill(pid, signal.SIGKILL)
        self.slurmctld_restart()

    def slurmctld_restart(self, env=None):
        """`env`: variables beside the usual ones."""
        self.slurmctld_stop()
        self._start("slurmctld", env=env)()
        wait_for(lambda: self.run(["scontrol", "ping"]).rc == 0, 20, "slurmctld to answer")

    def slurmdbd_stop(self):
        self._daemons.stop("slurmdbd")

    def slurmdbd_restart(self):
        self.slurmdbd_stop()
        self._start("slurmdbd")()

    def wait_idle(self, nodes=None, limit_s=60):
        """Waits until these nodes (default all) are up and not waiting for anything."""
        nodes = nodes or self.nodes
        good = {"idle", "mixed", "allocated"}

        def ready():
            states = self._node_states()
            return all(states.get(node) in good for node in nodes)

        wait_for(ready, limit_s, f"{', '.join(nodes)} to be idle", 0.1)

    def _node_states(self):
        out = self.run(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout
        return dict(line.split() for line in out.splitlines())

    # --- up -----------------------------------------------------------------------------------

    def up(self):
        """Starts the lab; returns False if it was up already."""
        if os.geteuid():
            raise LabError("a lab needs root: it starts slurmd and makes cgroups")
        with self._locked():
            if self.is_up():
                return False
            if self._namesakes():
                raise LabError(f"another lab named '{self.name}' is up on this host, in another"
                               " folder; their cgroups would be the same. Take another --name")
            self._clear()
            try:
                self._prepare()
                self._start_all()
            except BaseException as error:
                try:
                    self._stop_all()
                except LabError as also:
                    raise LabError(f"{error}\nand then, cleaning up: {also}") from error
                raise
        return True

    @contextlib.contextmanager
    def _locked(self):
        """One up or down at a time."""
        self.dir.mkdir(parents=True, exist_ok=True)
        if not self._state() and set(os.listdir(self.dir)) - {"lock"}:
            raise LabError(f"{self.dir} is not empty and not a lab's folder")
        self.dir.chmod(0o755)
        with open(self.dir / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _clear(self):
        """Ends what an earlier lab left behind in this folder, and removes its files."""
        if self._state():
            self._stop_all()
        self._remove_files()

    def _prepare(self):
        ports = lab_procs.free_ports(self._wanted_nodes + 2)
        names = ["slurmctld", "slurmdbd", *(f"{self.name}{i + 1}" for i in
                                            range(self._wanted_nodes))]
        state = {"name": self.name, "nodes": self._wanted_nodes,
                 "ports": dict(zip(names, ports)), "build": None}
        self._save(state)
        lab_setup.make_users()
        lab_setup.make_folders(self.dir, self.nodes)
        lab_setup.make_munge_key(self.dir)
        lab_setup.make_database(self.dir)
        state["build"] = lab_setup.reachable_build(self._wanted_build, self.dir / "build")
        self._save(state)
        examples = REPO / "slurm-conf-examples"
        lab_setup.write_conf(
            self.dir, self.name, self.nodes, state["ports"],
            [*lab_setup.job_submit_conf(examples / "slurm.conf", self.build), *self.conf],
            self.cgroup_conf)
        self.set_plugstack(lab_setup.example_plugstack(examples / "plugstack.conf", self.build,
                                                       self.dir))
        self.set_sphase_conf(lab_setup.example_text(
            examples / "sphase.conf", lab_setup.SPHASE_CONF_PATHS, self.build, self.dir))

    def _save(self, state):
        (self.dir / "lab.json").write_text(json.dumps(state, indent=1, default=str))

    def _daemon_names(self):
        """In the order in which they start."""
        return ["munged", "mariadbd", "slurmdbd", "slurmctld", *self.nodes]

    def _start(self, name, prefix=(), env=None):
        """Starts a daemon and returns the function that waits until it is ready."""
        ports = self._state()["ports"]
        env = {**self.env(), "MYSQL_UNIX_PORT": str(self.dir / "mariadb" / "socket"), **(env or {})}
        self._daemons.start(name, [*map(str, prefix), *lab_daemons.argv(name, self.dir)], env)
        return lambda: self._daemons.wait_ready(
            name, lambda: lab_daemons.is_ready(name, self.dir, ports), limit_s=60)

    def _start_all(self):
        for wait in [self._start(name) for name in ("munged", "mariadbd")]:
            wait()
        self._start("slurmdbd")()
        self._add_accounts()
        self._start("slurmctld")()
        for wait in [self._start(node) for node in self.nodes]:
            wait()
        try:
            self.wait_idle()
        except LabError as error:
            raise LabError(f"{error}\n{self._daemons.log_tail('slurmctld')}") from None

    def _add_accounts(self):
        for entity in (["cluster", self.name], ["account", "lab"],
                       ["user", ",".join(USERS), "account=lab"]):
            self.run(["sacctmgr", "--immediate", "add", *entity], check=True)

    # --- down ---------------------------------------------------------------------------------

    def down(self, purge=False):
        """Ends the lab; returns False if there was nothing to end. Logs and node stores stay for
        the curious unless `purge`."""
        if not self._state():
            return False
        with self._locked():
            ended = bool(self._daemons.known())
            self._stop_all()
            self._remove_files(keep=() if purge else ("etc", "log", "home", "spool-sphase",
                                                      "lab.json", "lock"))
            if purge:
                self.dir.rmdir()
        return ended

    def _stop_all(self):
        self._cancel_jobs()
        for name in reversed(self._daemon_names()):
            self._daemons.stop(name)
        if not self._namesakes():
            lab_leftovers.end(self.nodes, self.dir, self.slurm_conf)
            lab_cgroups.remove_trees(self.nodes)
        lab_cgroups.release(self.dir / "cgroup")
        lab_setup.release_build(self.dir / "build")

    def _cancel_jobs(self):
        if not self._daemons.alive("slurmctld"):
            return
        jobs = self.run(["squeue", "-h", "-o", "%A"]).stdout.split()
        if not jobs:
            return
        self.run(["scancel", *sorted(set(jobs))])
        try:
            wait_for(lambda: not self.run(["squeue", "-h"]).stdout, 15, "the jobs to end", 0.1)
        except LabError:
            pass  # lab_leftovers ends them the hard way.

    def _namesakes(self):
        ours = {pid for pid, _ in self._daemons.known().values()}
        return lab_leftovers.namesakes(self.nodes, ours)

    def _remove_files(self, keep=("lock",)):
        for path in self.dir.iterdir():
            if path.name in keep:
                continue
            if path.name in ("build", "cgroup"):
                lab_setup.remove_mount_points(path)
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


if __name__ == "__main__":
    import lab_command
    sys.exit(lab_command.main())
