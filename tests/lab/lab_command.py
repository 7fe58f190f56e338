"""The command line of lab.py: up, down, status, sh."""

import argparse
import json
import subprocess
import sys
import time

from lab import Lab, LabError
from lab_setup import USERS


def _parser():
    parser = argparse.ArgumentParser(
        prog="lab.py", description="A private, real Slurm cluster in one folder.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="up|down|status|sh")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default="lab", help="cluster name; nodes are NAME1, NAME2, …")
    common.add_argument("--dir", help="the lab's folder (default /tmp/sphase-lab-NAME)")

    up = commands.add_parser("up", parents=[common], help="start it (nothing if it is up)")
    up.add_argument("--nodes", type=int, default=4, help="number of nodes (default 4)")
    up.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE",
                    help="a line for slurm.conf; KEY+=VALUE appends (may be repeated)")
    up.add_argument("--cgroup-conf", action="append", default=[], metavar="KEY=VALUE",
                    help="the same for cgroup.conf")
    up.add_argument("--build", help="build folder with the plugins (default build/release)")

    down = commands.add_parser("down", parents=[common], help="end it")
    down.add_argument("--purge", action="store_true", help="remove logs and node stores too")

    status = commands.add_parser("status", parents=[common], help="daemons and nodes; 3 if not up")
    status.add_argument("--json", action="store_true")

    shell = commands.add_parser("sh", parents=[common], help="a shell or command in the lab")
    shell.add_argument("--user", default="root", help="root, u1 or u2")
    shell.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD …")
    return parser


def _up(lab):
    began = time.monotonic()
    if lab.up():
        print(f"lab '{lab.name}' is up after {time.monotonic() - began:.1f} s:"
              f" {lab.hostlist()} in {lab.dir}")
    else:
        print(f"lab '{lab.name}' is up already: {lab.hostlist()} in {lab.dir}")
    return 0


def _down(lab, purge):
    ended = lab.down(purge)
    print(f"lab '{lab.name}' is {'down' if ended else 'not up'}")
    return 0


def _status(lab, as_json):
    status = lab.status()
    if as_json:
        print(json.dumps(status, indent=1))
    else:
        print(f"lab '{lab.name}' is {'up' if status['up'] else 'not up'}   {lab.dir}")
        for name, daemon in status["daemons"].items():
            state = "alive" if daemon["alive"] else "dead"
            print(f"  {name:<12}{state:<7}{daemon['pid'] or '':<9}{status['nodes'].get(name, '')}")
    return 0 if status["up"] else 3


def _sh(lab, user, argv):
    user = {"u1": USERS[0], "u2": USERS[1]}.get(user, user)
    if user not in ("root", *USERS):
        raise LabError(f"--user {user}: what is right is root, u1 or u2")
    if not lab.is_up():
        raise LabError(f"lab '{lab.name}' is not up")
    argv = argv[1:] if argv[:1] == ["--"] else argv
    env = {**lab.env(user), "PS1": f"{user}@{lab.name}$ "}
    child = lab.popen_as(user, argv or ["bash", "--norc"], env=env)
    while True:
        try:
            rc = child.wait()
            return rc if rc >= 0 else 128 - rc
        except KeyboardInterrupt:
            continue  # The terminal sent it to the child as well.


def main(argv=None):
    args = _parser().parse_args(argv)
    try:
        if args.command == "up":
            return _up(Lab(args.name, dir=args.dir, nodes=args.nodes, conf=args.conf,
                           cgroup_conf=args.cgroup_conf, build=args.build))
        lab = Lab(args.name, dir=args.dir)
        if args.command == "down":
            return _down(lab, args.purge)
        if args.command == "status":
            return _status(lab, args.json)
        return _sh(lab, args.user, args.argv)
    except (LabError, OSError, subprocess.SubprocessError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
