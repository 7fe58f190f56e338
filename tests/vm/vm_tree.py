"""The guest's Debian system, as a folder: made once by debootstrap and apt, then kept."""

import shutil
from pathlib import Path

from vm_tools import CACHE, HERE, VmError, key_of, run_unshared, say

SUITE = "trixie"  # Debian 13: Slurm 24.11, Linux 6.12

PACKAGES = (
    # The guest.
    "linux-image-cloud-amd64", "tiny-initramfs",  # the kernel wants some maker of an initramfs
    "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "procps", "passwd",
    "util-linux", "busybox-static", "cpio", "kmod", "xz-utils",
    # The project, built in the tree.
    "g++", "cmake", "ninja-build", "ccache", "pkg-config", "python3-minimal", "libslurm-dev",
    "libmunge-dev", "libboost-dev", "libcdb-dev", "libcgroup-dev", "libeigen3-dev", "libpapi-dev",
    "libsqlite3-dev", "libzstd-dev", "libcli11-dev", "libfmt-dev", "nlohmann-json3-dev",
    "doctest-dev", "libjs-dygraphs",
)


def mirror() -> str:
    """Where this host has its own Debian packages from."""
    apt = Path("/etc/apt")
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        for word in path.read_text(errors="replace").split() if path.is_file() else ():
            if word.startswith("http") and word.rstrip("/").endswith("/debian"):
                return word
    raise VmError("no Debian mirror in /etc/apt/sources.list or sources.list.d")


def tree_key() -> str:
    return key_of(SUITE, *PACKAGES, HERE / "make_tree.sh")


def tree() -> Path:
    """The tree's folder; takes a minute or two the first time."""
    ready = CACHE / f"tree-{tree_key()}"
    if ready.is_dir():
        return ready
    aside = CACHE / "tree.new"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    say(f"making a Debian {SUITE} tree of {len(PACKAGES)} packages and what they need")
    run_unshared([HERE / "make_tree.sh", aside, SUITE, mirror(), *PACKAGES],
                 CACHE / "log" / "tree.log")
    aside.rename(ready)
    return ready


def kernel(tree_dir: Path) -> Path:
    found = list((tree_dir / "boot").glob("vmlinuz-*"))
    if len(found) != 1:
        raise VmError(f"{tree_dir}/boot has {len(found)} kernels, expected one")
    return found[0]
