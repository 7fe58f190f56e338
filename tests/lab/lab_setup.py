"""What a lab needs before its daemons start: users, a database folder, configuration files."""

import os
import pwd
import re
import secrets
import shutil
import string
import subprocess
import tempfile
from pathlib import Path

import lab_cgroups
from lab_daemons import MARIADBD_OPTIONS
from lab_procs import LabError

TEMPLATES = Path(__file__).resolve().parent / "conf"
USERS = ("sphase_u1", "sphase_u2")
CPUS_PER_NODE = 4
MEMORY_MB_PER_NODE = 4000

# Where the example plugstack.conf says that things are, and what stands there in a lab.
PLUGSTACK_PATHS = (
    ("/usr/lib/x86_64-linux-gnu/slurm-wlm/phase_telemetry.so", "{build}/spank/phase_telemetry.so"),
    ("/usr/libexec/sphase/sphase-recorder", "{build}/spank/recorder/sphase-recorder"),
    ("/var/spool/sphase", "{dir}/spool-sphase"),
    ("/run/sphase", "{dir}/run-sphase"),
)
# The same for sphase.conf.
SPHASE_CONF_PATHS = (("/var/lib/sphase", "{dir}/state-sphase"),)


def make_users():
    """Creates the lab's ordinary users; they own jobs and never log in."""
    for user in USERS:
        try:
            pwd.getpwnam(user)
        except KeyError:
            subprocess.run(["useradd", "--user-group", "--no-create-home", "--home-dir",
                            "/nonexistent", "--shell", "/bin/bash", user], check=True)


def make_folders(lab_dir, nodes):
    """The lab's folder tree. World-readable, but for the key and the database."""
    for name, mode in (("etc", 0o755), ("log", 0o755), ("run", 0o755), ("state", 0o700),
                       ("spool", 0o755), ("munge", 0o755), ("munge-key", 0o700),
                       ("mariadb", 0o700), ("home", 0o755), ("spool-sphase", 0o755),
                       ("run-sphase", 0o755), ("state-sphase", 0o700)):
        folder = lab_dir / name
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    for node in nodes:
        (lab_dir / "spool" / node).mkdir(mode=0o755)
    for user in USERS:
        home = lab_dir / "home" / user
        home.mkdir(exist_ok=True)
        home.chmod(0o700)
        shutil.chown(home, user, user)


def make_munge_key(lab_dir):
    path = lab_dir / "munge-key" / "munge.key"
    path.touch(mode=0o600)
    path.write_bytes(secrets.token_bytes(128))
    return path


def _cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base, "sphase")


def make_database(lab_dir):
    """Puts an initialised data folder at mariadb/data, by way of a template kept in the cache.

    root may enter through the socket without a password, nobody else may enter at all.
    """
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True,
                             check=True).stdout.split()[2]
    template = _cache_dir() / f"mariadb-{version}"
    if not template.is_dir():
        template.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=template.parent, prefix="new-"))
        _install_db(aside)
        try:
            aside.rename(template)
        except OSError:  # Another lab was faster.
            shutil.rmtree(aside)
    subprocess.run(["cp", "-a", "--reflink=auto", "--", template, lab_dir / "mariadb" / "data"],
                   check=True)


def _install_db(folder):
    done = subprocess.run(["mariadb-install-db", *MARIADBD_OPTIONS, f"--datadir={folder}",
                           "--force", "--skip-test-db", "--auth-root-authentication-method=socket"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder)
        raise LabError(f"mariadb-install-db failed:\n{(done.stdout + done.stderr)[-2000:]}")


def reachable(path):
    """Whether an ordinary user can enter every folder above `path`."""
    return all(folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents)


def reachable_build(build, mount_point):
    """`build`, or a read-only bind mount of it where users cannot get at it (a checkout in /root)."""
    if not build or not build.is_dir():
        return None
    if reachable(build) and build.stat().st_mode & 0o001:
        return build
    mount_point.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", build, mount_point], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", mount_point], check=True)
    return mount_point


def release_build(mount_point):
    if lab_cgroups.is_mounted(mount_point):
        subprocess.run(["umount", mount_point], check=True)


def remove_mount_points(folder):
    """Removes empty folders only: what is still mounted there is not the lab's to delete."""
    for path in [*folder.iterdir(), folder]:
        path.rmdir()


def merge_conf(text, changes):
    """Applies "Key=Value" (replace or add) and "Key+=Value" (append after a comma) to `text`.

    NodeName and PartitionName lines are always added, since a configuration has many of them.
    """
    lines = text.splitlines()
    for change in changes:
        key, equals, value = change.partition("=")
        append = key.endswith("+")
        key = key.rstrip("+").strip()
        if not equals or not key.isalnum():
            raise LabError(f"--conf {change!r}: what is right is Key=Value or Key+=Value")
        at = [] if key.lower() in ("nodename", "partitionname") else [
            i for i, line in enumerate(lines) if line.lower().startswith(f"{key.lower()}=")]
        if at and append:
            lines[at[0]] += f",{value}"
        elif at:
            lines[at[0]] = f"{key}={value}"
        else:
            lines.append(f"{key}={value}")
    return "\n".join(lines) + "\n"


def _write(path, text, mode=0o644):
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_text(text)


def _fill(template, **values):
    return string.Template((TEMPLATES / template).read_text()).substitute(values)


def _node_lines(nodes, ports):
    return "\n".join(
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
        f" CPUs={CPUS_PER_NODE} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS_PER_NODE}"
        f" ThreadsPerCore=1 RealMemory={MEMORY_MB_PER_NODE}"
        for node, port in zip(nodes, ports))


def write_conf(lab_dir, name, nodes, ports, conf, cgroup_conf):
    """Writes etc/slurm.conf, slurmdbd.conf and cgroup.conf."""
    kind, mount_point = lab_cgroups.choose(lab_dir / "cgroup")
    slurm = _fill(
        "slurm.conf.in", name=name, dir=lab_dir, slurmctld_port=ports["slurmctld"],
        slurmdbd_port=ports["slurmdbd"],
        proctrack="proctrack/cgroup" if kind else "proctrack/linuxproc",
        task_plugin="task/cgroup" if kind else "task/none",
        jobacct_gather="jobacct_gather/cgroup" if kind else "jobacct_gather/linux",
        node_lines=_node_lines(nodes, [ports[node] for node in nodes]),
        half_nodes=",".join(nodes[:max(1, len(nodes) // 2)]))
    etc = lab_dir / "etc"
    _write(etc / "slurm.conf", merge_conf(slurm, conf))
    _write(etc / "slurmdbd.conf", _fill("slurmdbd.conf.in", dir=lab_dir,
                                        slurmdbd_port=ports["slurmdbd"]), mode=0o600)
    cgroup = _fill("cgroup.conf.in", cgroup_plugin=kind or "cgroup/v1",
                   cgroup_mountpoint=mount_point or "/sys/fs/cgroup")
    if kind == "cgroup/v2":
        cgroup += "IgnoreSystemd=yes\n"
    _write(etc / "cgroup.conf", merge_conf(cgroup, cgroup_conf))


def example_text(example, paths, build, lab_dir):
    """An example file with the paths of this lab."""
    here = {installed: path.format(build=build, dir=lab_dir) for installed, path in paths}
    return re.sub("|".join(map(re.escape, here)), lambda found: here[found[0]],
                  example.read_text())


def example_plugstack(example, build, lab_dir):
    """The example plugstack.conf with the paths of this lab; "" if there is nothing to load yet."""
    if not example.is_file() or not build or not (build / "spank/phase_telemetry.so").is_file():
        return ""
    return example_text(example, PLUGSTACK_PATHS, build, lab_dir)


def job_submit_conf(example, build):
    """The lines of the example slurm.conf, and where the plugin is; [] if it is not built."""
    if not build or not (build / "job_submit/job_submit_phase_resize.so").is_file():
        return []
    lines = [line for line in example.read_text().splitlines() if line and line[0] != "#"]
    [slurms_own, *_] = [path.parent for path in Path("/usr/lib").glob("*/slurm*/select_cons_tres.so")]
    return [*lines, f"PluginDir={slurms_own}:{build}/job_submit"]
