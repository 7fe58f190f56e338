"""Finds and ends processes of jobs that outlived their slurmd, and nothing else.

slurmstepd and its children are not slurmd's children. A name alone never decides, since another
lab's (and a real cluster's) have the same names.
"""

import os

import lab_cgroups
import lab_procs


def namesakes(nodes, ours):
    """Pids of slurmds that serve nodes of these names but are not `ours`: a lab of the same name
    in another folder, whose cgroups have the same paths."""
    names = {node.encode() for node in nodes}

    def serves_one(pid):
        argv = lab_procs.read_proc(pid, "cmdline").split(b"\0")
        return argv[0].endswith(b"slurmd") and not names.isdisjoint(argv)

    return [pid for pid in lab_procs.all_pids() if pid not in ours and serves_one(pid)]


def _works_for(pid, lab_dir, slurm_conf):
    """Whether a process was started with this lab's configuration or holds a file of its stores.

    slurmstepd's environment holds SLURM_CONF and nothing else (22.05); it sets its own title, so
    the command line says nothing.
    """
    environment = lab_procs.read_proc(pid, "environ").split(b"\0")
    return f"SLURM_CONF={slurm_conf}".encode() in environment or lab_procs.holds_file_under(
        pid, [lab_dir / "spool", lab_dir / "spool-sphase", lab_dir / "run-sphase"])


def find(nodes, lab_dir, slurm_conf):
    """What is in the cgroups of our nodes, and the helpers of a step that work for this lab."""
    found = set()
    for tree in lab_cgroups.trees(nodes):
        found |= lab_cgroups.pids_in(tree)
    for pid in lab_procs.all_pids():
        helper = lab_procs.read_proc(pid, "comm").strip() in (b"slurmstepd", b"sphase-recorder")
        if helper and _works_for(pid, lab_dir, slurm_conf):
            found.add(pid)
    return found - {os.getpid()}


def end(nodes, lab_dir, slurm_conf):
    """Ends them; a few rounds, since a slurmstepd may have been starting another process."""
    for _ in range(3):
        leftovers = {pid: lab_procs.start_time(pid) for pid in find(nodes, lab_dir, slurm_conf)}
        if not any(leftovers.values()):
            return
        for pid, started in leftovers.items():
            if started:
                lab_procs.end_process(pid, started, limit_s=0.5)
