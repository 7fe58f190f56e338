"""One run of the guest, from nothing to its results in a folder on the host."""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

import vm_boot
import vm_build
import vm_image
import vm_tree
from vm_tools import CACHE, VmError, say, tail


@contextlib.contextmanager
def _alone():
    """One run at a time in this checkout."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_guest() -> Path:
    """Makes what is missing, boots, and returns the folder of results (a Guest reads it)."""
    if os.geteuid():
        raise VmError("the guest's tree needs root: debootstrap, chroot and mounts")
    with _alone():
        tree = vm_tree.tree()
        build = vm_build.build_in(tree)
        folder = CACHE / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        disk = vm_image.run_disk(build, folder)
        accel = vm_boot.accelerator()
        command = vm_boot.qemu_command(accel, vm_tree.kernel(tree), vm_image.initramfs(tree),
                                       vm_image.tree_disk(tree), disk)
        say(f"booting ({accel})")
        vm_boot.boot(command, folder / "console.log")
        return vm_image.read_disk(disk, folder)


class Guest:
    """What the guest left: outputs of its jobs, logs, databases."""

    def __init__(self, folder: Path):
        self.folder = folder
        if self.text("guest_rc").strip() != "0":
            raise VmError("the guest's script failed; its console ends with\n"
                          f"{tail(folder.parent / 'console.log')}")

    def text(self, name: str) -> str:
        path = self.folder / "results" / name
        return path.read_text(errors="replace") if path.is_file() else ""

    def number(self, name: str) -> int:
        return int(self.text(name))

    @property
    def node_db(self) -> Path:
        return self.folder / "spool-sphase" / "vm1" / "node.db"
