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
# With daemons' and file systems' programs, which a PATH may lack.
PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
ENV = {**os.environ, "PATH": PATH}
# Whatever ends this process ends the command too.
WITH_US = ("setpriv", "--pdeathsig", "KILL")


class VmError(Exception):
    """Something that whoever runs the test has to know."""


def say(text):
    print(f"==> vm: {text}", file=sys.stderr, flush=True)


def missing_tools() -> list[str]:
    """Debian packages without which there is no guest."""
    return sorted({package for tool, package in NEEDED.items()
                   if shutil.which(tool, path=PATH) is None})


def run(command, log: Path, limit_s: float | None = None) -> None:
    """Runs a command with its output in `log`; VmError with the end of the log if it fails."""
    words = [*WITH_US, *map(str, command)]
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(log, "wb") as out:
            code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, env=ENV, check=False,
                                  timeout=limit_s).returncode
        how = f"ended with {code}"
    except subprocess.TimeoutExpired:
        code, how = None, f"was not done after {limit_s:g} s"
    if code != 0:
        raise VmError(f"{' '.join(map(str, command))} {how}; {log} ends with\n{tail(log)}")


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
