"""What a lab has to know about control groups: which kind the host has, and how to clean up.

Slurm's trees are named after nodes (22.05, CONF_PARAMETERS and src/plugins/cgroup/v1):
v1  <controller>/slurm_<node>/uid_U/job_J/step_S/task_N
v2  system.slice/<node>_slurmstepd.scope/job_J/step_S/user/task_N
"""

import os
import subprocess
from pathlib import Path

from lab_procs import LabError, wait_for

# Those that Slurm's cgroup/v1 plugin uses for the settings of the lab.
V1_CONTROLLERS = ("cpuset", "cpuacct", "devices", "freezer", "memory")
SOURCE = "sphase-lab"  # What /proc/mounts shows as the source of a lab's own mounts.


def _mounts():
    """[(mount point, file system type, source, super options)] as this process sees them."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        kind, source, options = right.split(" ", 2)
        point = left.split()[4].encode().decode("unicode_escape")  # A space is written \040.
        found.append((point, kind, source, options.split(",")))
    return found


def is_mounted(path):
    """os.path.ismount does not see a bind mount within one file system."""
    return str(path) in (point for point, *_ in _mounts())


def v1_mounts(labs_too=True):
    """[(controller, mount point)] of the v1 hierarchies mounted here, by a lab or otherwise."""
    return [(option, point) for point, kind, source, options in _mounts() if kind == "cgroup"
            for option in options if option in V1_CONTROLLERS and (labs_too or source != SOURCE)]


def v2_mount_point():
    """Mount point of the v2 hierarchy if it has the memory controller, else None."""
    for point, kind, *_ in _mounts():
        if kind == "cgroup2":
            controllers = Path(point, "cgroup.controllers").read_text().split()
            return point if "memory" in controllers else None
    return None


def choose(own_mounts):
    """(kind, mount point) for Slurm: kind is "cgroup/v1", "cgroup/v2" or None (no cgroups here).

    A bare chroot often has no cgroup file system mounted although the kernel has the v1
    hierarchies. They are then mounted below `own_mounts`, which `release` undoes. Another lab's
    mounts are of no use, since they go when it goes.
    """
    mounted = dict(v1_mounts(labs_too=False))
    if all(controller in mounted for controller in V1_CONTROLLERS):
        parents = {str(Path(point).parent) for point in mounted.values()}
        if len(parents) == 1:
            return "cgroup/v1", parents.pop()
    if v2_mount_point():
        return "cgroup/v2", v2_mount_point()
    if _mount_v1(Path(own_mounts)):
        return "cgroup/v1", str(own_mounts)
    return None, None


def _v1_hierarchies():
    """{controller: every controller of its hierarchy}. A hierarchy is mounted as a whole.

    Source: cgroups(7), /proc/cgroups: name, hierarchy id. Id 0 is v2 or none; to mount such a
    controller as v1 would take it away from v2, so it is left out.
    """
    members = {}
    for line in Path("/proc/cgroups").read_text().splitlines()[1:]:
        name, hierarchy = line.split()[:2]
        members.setdefault(hierarchy, []).append(name)
    members.pop("0", None)
    return {name: names for names in members.values() for name in names}


def _mount_v1(folder):
    hierarchies = _v1_hierarchies()
    if not all(controller in hierarchies for controller in V1_CONTROLLERS):
        return False
    for controller in V1_CONTROLLERS:
        point = folder / controller
        point.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", "-t", "cgroup", "-o", ",".join(hierarchies[controller]),
                               SOURCE, point], stderr=subprocess.DEVNULL, check=False)
        if done.returncode:
            release(folder)
            return False
    return True


def release(own_mounts):
    """Unmounts what `choose` mounted."""
    for controller in V1_CONTROLLERS:
        point = Path(own_mounts, controller)
        if is_mounted(point):
            subprocess.run(["umount", point], check=True)


def trees(nodes):
    """The cgroup directories that Slurm made for `nodes`."""
    roots = [Path(point) for _, point in v1_mounts()]
    found = [root / f"slurm_{node}" for root in roots for node in nodes]
    if v2_mount_point():
        slice_dir = Path(v2_mount_point(), "system.slice")
        found += [slice_dir / f"{node}_slurmstepd.scope" for node in nodes]
    return [tree for tree in dict.fromkeys(found) if tree.is_dir()]


def pids_in(tree):
    """Every process in `tree` and below."""
    pids = set()
    for folder, _, _ in os.walk(tree):
        try:
            pids.update(map(int, Path(folder, "cgroup.procs").read_text().split()))
        except OSError:
            continue  # The group went away meanwhile.
    return pids - {0}


def _remove(tree):
    """rmdir from the leaves up; True when nothing is left."""
    for folder, _, _ in os.walk(tree, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            continue
    return not tree.exists()


def remove_trees(nodes, limit_s=5.0):
    """Removes the groups of `nodes`; a group whose last process just ended stays busy a moment."""
    for tree in trees(nodes):
        try:
            wait_for(lambda: _remove(tree), limit_s, f"{tree} to be removable")
        except LabError as error:
            raise LabError(f"{error}; processes in it: {sorted(pids_in(tree))}") from None
