"""The guest's disks and its initramfs.

vda: the Debian tree, kept; a guest writes to a copy that is forgotten (qemu's snapshot=on).
vdb: the run's own: programs, configuration, the guest's scripts, and in the end the results.
"""

import shutil
import sys
from pathlib import Path

from vm_build import PRODUCTS, in_tree
from vm_tools import CACHE, HERE, REPO, key_of, run, say
from vm_tree import tree_key

sys.path.insert(0, str(REPO / "tests" / "lab"))

import lab_setup

TREE_DISK_SIZE = "3G"  # sparse: takes what is used, about 0.9 GB
RUN_DISK_SIZE = "256M"
GUEST_FILES = ("guest.sh", "jobs.sh", "show_groups.sh")
# What stands where in the guest.
GUEST_DIR, GUEST_BUILD = "/sphase", "/sphase/build"
SLURM_PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"


def make_ext4(disk: Path, folder: Path, size: str) -> None:
    """No journal: a disk whose guest did not end well is looked at, not used again."""
    aside = disk.with_suffix(".new")
    aside.unlink(missing_ok=True)
    run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", folder, aside, size],
        CACHE / "log" / "mke2fs.log")
    aside.rename(disk)


def tree_disk(tree_dir: Path) -> Path:
    disk = CACHE / f"tree-{tree_key()}.ext4"
    if not disk.is_file():
        say("making the image of the tree")
        make_ext4(disk, tree_dir, TREE_DISK_SIZE)
    return disk


def initramfs(tree_dir: Path) -> Path:
    """Made in the tree, by its own busybox, cpio and kernel modules."""
    parts = [HERE / "make_initramfs.sh", HERE / "initramfs_init.sh"]
    made = CACHE / f"initramfs-{key_of(tree_key(), *parts)}"
    if not made.is_file():
        out = CACHE / "initramfs.new"
        out.mkdir(exist_ok=True)
        in_tree(tree_dir, HERE, out, ["/src/make_initramfs.sh", "/src/initramfs_init.sh",
                                      "/build/initramfs"], CACHE / "log" / "initramfs.log")
        (out / "initramfs").rename(made)
    return made


def _example(name: str, paths) -> str:
    return lab_setup.example_text(REPO / "slurm-conf-examples" / name, paths, GUEST_BUILD,
                                  GUEST_DIR)


def write_conf(etc: Path) -> None:
    """slurm.conf and the project's own files, from the examples that a sysadmin gets."""
    slurm = (HERE / "conf" / "slurm.conf").read_text()
    slurm += (REPO / "slurm-conf-examples" / "slurm.conf").read_text()
    slurm += f"PluginDir={SLURM_PLUGINS}:{GUEST_BUILD}/job_submit\n"
    (etc / "slurm.conf").write_text(slurm)
    shutil.copy(HERE / "conf" / "cgroup.conf", etc)
    (etc / "plugstack.conf").write_text(_example("plugstack.conf", lab_setup.PLUGSTACK_PATHS))
    (etc / "sphase.conf").write_text(_example("sphase.conf", lab_setup.SPHASE_CONF_PATHS))


def run_disk(build: Path, folder: Path) -> Path:
    """Lays out `folder`/disk and makes `folder`/run.ext4 of it."""
    disk = folder / "disk"
    for path in ("etc", "results"):
        (disk / path).mkdir(parents=True)
    for name in GUEST_FILES:
        shutil.copy(HERE / name, disk)
    for product in PRODUCTS:
        place = disk / "build" / product
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / product, place)
    write_conf(disk / "etc")
    make_ext4(folder / "run.ext4", disk, RUN_DISK_SIZE)
    return folder / "run.ext4"


def read_disk(disk: Path, folder: Path) -> Path:
    """Copies what the guest left on its disk into `folder`/guest, without mounting it."""
    out = folder / "guest"
    out.mkdir()
    for name in ("results", "spool-sphase"):
        run(["debugfs", "-R", f"rdump /{name} {out}", disk], folder / "debugfs.log")
    return out
