"""Boots the guest and waits for its end."""

import os
import time
from pathlib import Path

from vm_tools import VmError, run, say

CPUS = 2
MEMORY_MIB = 1536
# Of a whole run, boot to poweroff.
LIMIT_S = 300
ACCELERATORS = ("tcg", "kvm")


def accelerator() -> str:
    """"tcg", emulation, unless $SPHASE_VM_ACCEL says "kvm". Emulation is everywhere and fast
    enough; a /dev/kvm that can be opened need not run a guest (where the host is one)."""
    asked = os.environ.get("SPHASE_VM_ACCEL") or "tcg"
    if asked not in ACCELERATORS:
        raise VmError(f"SPHASE_VM_ACCEL={asked}: what is right is one of {', '.join(ACCELERATORS)}")
    return asked


def qemu_command(accel: str, kernel: Path, initramfs: Path, tree_disk: Path,
                 run_disk: Path) -> list[str]:
    return ["qemu-system-x86_64", "-accel", accel, "-cpu", "host" if accel == "kvm" else "max",
            "-smp", str(CPUS), "-m", str(MEMORY_MIB), "-no-user-config", "-nodefaults",
            "-display", "none", "-nic", "none", "-no-reboot", "-serial", "stdio",
            "-kernel", str(kernel), "-initrd", str(initramfs),
            # panic=-1: restart at once, which -no-reboot makes the end.
            "-append", "console=ttyS0 quiet panic=-1",
            "-drive", f"file={tree_disk},if=virtio,format=raw,snapshot=on",
            "-drive", f"file={run_disk},if=virtio,format=raw,cache=unsafe"]


def boot(command: list[str], console: Path) -> None:
    """Runs the guest to its end."""
    began = time.monotonic()
    run(command, console, LIMIT_S)
    say(f"guest ended after {time.monotonic() - began:.0f} s")
