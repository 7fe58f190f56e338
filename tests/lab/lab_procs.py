"""Processes, ports and sockets of this host, as far as a lab has to know them.

A pid alone does not name a process, since the kernel uses it again; a pid with its start time does.
"""

import os
import random
import signal
import socket
import time
from pathlib import Path


class LabError(Exception):
    """Something that the user of a lab has to know, in one sentence."""


def wait_for(fn, limit_s, what, step_s=0.05):
    """Calls `fn` until it returns something true, and returns that; LabError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > deadline:
            raise LabError(f"waited {limit_s:g} s in vain for {what}")
        time.sleep(step_s)


def start_time(pid):
    """Start time of a living process, in ticks since boot; None if it is gone or a zombie.

    Source: proc(5), /proc/<pid>/stat fields 3 (state) and 22 (starttime).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2:].split()
    return None if fields[0] in "ZX" else int(fields[19])


def reap(pid):
    """Takes the exit status of `pid` if it is a child of this process."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def end_process(pid, started, limit_s=10.0):
    """SIGTERM, then SIGKILL after `limit_s`; nothing if `pid` is no longer that process."""

    def gone():
        reap(pid)
        return start_time(pid) != started

    for number, patience_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, 5.0)):
        if gone():
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        try:
            wait_for(gone, patience_s, f"the end of process {pid}", step_s=0.01)
        except LabError:
            if number == signal.SIGKILL:
                raise


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_proc(pid, name):
    """/proc/<pid>/<name> as bytes; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def holds_file_under(pid, folders):
    """Whether `pid` has its working directory or an open file in one of `folders`."""
    prefixes = tuple(f"{folder}/" for folder in folders)
    links = [f"/proc/{pid}/cwd"]
    try:
        links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    for link in links:
        try:
            if f"{os.readlink(link)}/".startswith(prefixes):
                return True
        except OSError:
            continue
    return False


def free_ports(count):
    """`count` loopback ports that nobody listens on.

    Below the usual range of outgoing connections, so that one of those cannot take a port between
    this choice and the daemon's bind.
    """
    ports = []
    for port in random.sample(range(12000, 30000), 2000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise LabError(f"no {count} free ports between 12000 and 30000")


def port_listens(port):
    """Whether somebody listens on a TCP port. Looks without connecting, since Slurm's daemons log
    an error for a connection that says nothing.

    Source: proc(5), /proc/net/tcp: local address and port in hex, state 0A is LISTEN.
    """
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state = line.split()[:4]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


def socket_answers(path):
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
