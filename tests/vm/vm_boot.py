"""Boots the guest and waits for its end."""

import os
import subprocess
import time
from pathlib import Path

from vm_tools import SBIN, VmError, say, tail

CPUS = 2
MEMORY_MIB = 1536
# Of a whole run, boot to poweroff.
LIMIT_S = 300
ACCELERATORS = ("tcg", "kvm")


def accelerator() -> str:
    """"tcg", emulation, unless $SPHASE_VM_ACCEL says "kvm". Emulation is everywhere and is done in
    some 20 s; a /dev/kvm that can be opened need not run a guest (a host that is a guest itself)."""
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


def boot(command: list[str], console: Path, limit_s: float = LIMIT_S) -> float:
    """Runs the guest to its end and returns the seconds it took."""
    began = time.monotonic()
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SBIN}"}
    with open(console, "wb") as log:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, env=env) as qemu:
            try:
                code = qemu.wait(limit_s)
            except subprocess.TimeoutExpired:
                qemu.kill()
                raise VmError(f"the guest was not done after {limit_s:g} s; {console} ends with\n"
                              f"{tail(console)}") from None
            except BaseException:
                qemu.kill()
                raise
    elapsed_s = time.monotonic() - began
    if code:
        raise VmError(f"qemu ended with {code}; {console} ends with\n{tail(console)}")
    say(f"guest ended after {elapsed_s:.0f} s")
    return elapsed_s
