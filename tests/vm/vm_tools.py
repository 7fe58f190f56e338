"""What the other files of this folder share: errors, commands, and what this host can do."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
# Everything that is made here: the Debian tree, its image, the build in it. Safe to delete.
CACHE = REPO / "build" / "vm"

NEEDED = {"qemu-system-x86_64": "qemu-system-x86", "debootstrap": "debootstrap",
          "mke2fs": "e2fsprogs", "debugfs": "e2fsprogs", "unshare": "util-linux"}
# Daemons' and file systems' programs, which a PATH may lack.
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


class VmError(Exception):
    """Something that whoever runs the test has to know."""


def say(text):
    print(f"==> vm: {text}", file=sys.stderr, flush=True)


def missing_tools() -> list[str]:
    """Debian packages without which there is no guest."""
    path = f"{os.environ.get('PATH', '')}:{SBIN}"
    return sorted({package for tool, package in NEEDED.items()
                   if shutil.which(tool, path=path) is None})


def run(command, log: Path, **options) -> None:
    """Runs a command with its output in `log`; VmError with the end of the log if it fails."""
    words = [str(word) for word in command]
    env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SBIN}"}
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, env=env, check=False, **options)
    if done.returncode:
        raise VmError(f"{' '.join(words)} ended with {done.returncode}; {log} ends with\n"
                      f"{tail(log)}")


def run_unshared(command, log: Path) -> None:
    """`run` in a mount namespace of its own: what the command mounts, nobody else ever sees, and it
    is gone when the command ends, however it ends."""
    run(["unshare", "--mount", "--propagation", "private", *command], log)


def tail(log: Path, lines: int = 40) -> str:
    text = log.read_text(errors="replace") if log.is_file() else "(no file)"
    return "\n".join(text.splitlines()[-lines:])


def key_of(*parts) -> str:
    """A short name for what something was made from: strings, and the contents of files."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else str(part).encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:12]
