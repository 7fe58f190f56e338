"""cluster.db files with jobs to draw: made with the shipped schema, as the collector would."""

import math
import pathlib
import sqlite3

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECOND = 1_000_000_000
MIB = 1 << 20
START_S = 1_700_000_000
HOSTILE = "</script><script>alert(1)</script>"


def make_db(path):
    """A new cluster.db; the schema is in as many files as node.db and cluster.db share."""
    db = sqlite3.connect(path)
    for name in ("node", "counter", "sealed", "shippers", "cluster", "records"):
        db.executescript((ROOT / "common/schema" / f"{name}.sql").read_text())
    db.execute("PRAGMA user_version = 4")
    return db


def insert(db, table, **values):
    names, marks = ",".join(values), ",".join("?" * len(values))
    return db.execute(f"INSERT INTO {table}({names}) VALUES({marks})", tuple(values.values())).lastrowid


def at(seconds):
    return START_S * SECOND + round(seconds * 1e9)


class Job:
    """One start of a job; times are seconds after its start."""

    def __init__(self, db, job_id, end_s, state="COMPLETED", **more):
        self.db, self.job_id, self.restart = db, job_id, more.pop("restart_count", 0)
        self.shift_s = more.pop("shift_s", 0)
        facts = dict(user="alice", uid=1000, name="flow solver", account="physics", partition="batch",
                     requested_nodes=4, requested_cpus=32, requested_memory="16G per node", time_limit_s=7200)
        facts.update(more)
        start_s = START_S + self.shift_s
        insert(db, "job", cluster="c1", job_id=job_id, restart_count=self.restart, submit_time=START_S - 60,
               start_time=start_s if end_s is not None else None,
               end_time=start_s + end_s if end_s else None, state=state, source="slurmdbd", seen_ns=at(0), **facts)

    def at(self, seconds):
        return at(seconds + self.shift_s)

    def allocation(self, nodes, begin_s, end_s, cpus=8, memory_mib=16384, state="COMPLETED"):
        key = dict(cluster="c1", job_id=self.job_id, submit_time=START_S - 60, restart_count=self.restart,
                   start_time=START_S + self.shift_s + begin_s)
        insert(self.db, "allocation", **key, end_time=START_S + self.shift_s + end_s, state=state, nodes="n",
               node_count=len(nodes), cpus=cpus * len(nodes), memory_bytes=memory_mib * MIB * len(nodes))
        for node in nodes:
            insert(self.db, "allocation_node", **key, node=node, cpus=cpus, memory_bytes=memory_mib * MIB)

    def run(self, node, step, begin_s, end_s, nodes=1, tasks=4, cpus=8, memory_mib=16384, period_s=1, **more):
        return insert(self.db, "run", cluster="c1", job_id=self.job_id, restart_count=self.restart,
                      start_ns=self.at(begin_s), step=step, node=node, uid=1000, step_nodes=nodes,
                      node_tasks=tasks, job_cpus=cpus, step_cpus=cpus, job_memory_bytes=memory_mib * MIB,
                      step_memory_bytes=memory_mib * MIB, period_ns=round(period_s * SECOND), tick_ns=4_000_000,
                      sphase_version="0.1.0", last_ns=self.at(end_s), end_ns=self.at(end_s),
                      cpu_source="cgroup2 cpu.stat", memory_source="cgroup2 memory", io_source="proc io",
                      counter_source="papi-hw", markers=100, **more)

    def samples(self, run, begin_s, end_s, cpus_busy, memory_mib, period_s=1.0, gap=None):
        """`cpus_busy` and `memory_mib`: functions of the time in seconds."""
        rows, used, steps = [], 0.0, max(1, round((end_s - begin_s) / period_s))
        for i in range(steps + 1):
            time_s = begin_s + (end_s - begin_s) * i / steps
            if i:
                used += cpus_busy(time_s - period_s / 2) * (end_s - begin_s) / steps
            if gap and gap[0] < time_s < gap[1]:
                continue
            rows.append((run, self.at(time_s), "tick", round(used * 1e9), round(memory_mib(time_s) * MIB)))
        self.db.executemany("INSERT INTO sample(run_id, time_ns, kind, cpu_time_ns, memory_anon_bytes)"
                            " VALUES(?,?,?,?,?)", rows)

    def phase(self, run, path, begin_s, end_s, number=1, scope="task", task=0, cpu_s=None, ipc=None, flags=0):
        depth = path.count("/") if path != HOSTILE else 0
        insert(self.db, "phase", run_id=run, scope=scope, task=task, path=path, number=number, depth=depth, count=1,
               threads=1, begin_ns=self.at(begin_s), end_ns=self.at(end_s), wall_ns=round((end_s - begin_s) * 1e9),
               cpu_time_ns=None if cpu_s is None else round(cpu_s * 1e9), memory_peak_bytes=300 * MIB, flags=flags)
        if ipc is not None:
            cycles = round((end_s - begin_s) * 2.4e9)
            for event, value in (("PAPI_TOT_CYC", cycles), ("PAPI_TOT_INS", round(cycles * ipc))):
                insert(self.db, "counter", run_id=run, scope=scope, task=task, path=path, number=number,
                       event=event, value=value)

    def notice(self, node, code, text, time_s=1, step="0"):
        insert(self.db, "notice", cluster="c1", job_id=self.job_id, restart_count=self.restart, step=step, node=node,
               time_ns=self.at(time_s), code=code, text=text)


def one_node(db, job_id=1, hostile=HOSTILE):
    """A script with nested phases on one node, one of them named to do harm."""
    job = Job(db, job_id, 120, requested_nodes=1, requested_cpus=8)
    job.allocation(["n1"], 0, 120)
    batch = job.run("n1", "batch", 0, 120, tasks=1)
    job.samples(batch, 0, 120, lambda t: 0.02, lambda t: 12)
    for path, begin, end in (("stage", 1, 18), ("solve", 20, 95), ("write", 97, 118)):
        job.phase(batch, path, begin, end, scope="shell", cpu_s=0.2)
    solver = job.run("n1", "0", 21, 94)
    job.samples(solver, 21, 94, lambda t: 5.5 + 2 * math.sin(t / 4), lambda t: 900 + 60 * (t - 20),
                gap=(60.5, 68.5))
    insert(db, "attribute", run_id=solver, task=0, path="iterate", key="cells", value="1e6 <b>bold</b>")
    job.phase(solver, hostile, 21.5, 24, cpu_s=3, ipc=0.8)
    for i in range(8):
        begin = 25 + i * 8.5
        job.phase(solver, "iterate", begin, begin + 8, i + 1, cpu_s=42, ipc=1.1 + i / 10)
        job.phase(solver, "iterate/assemble", begin + 0.2, begin + 2.5, i + 1, cpu_s=9, ipc=0.9)
        job.phase(solver, "iterate/exchange", begin + 6.5, begin + 7.8, i + 1, cpu_s=2, ipc=0.4)
    job.notice("n1", "gap", "no samples for 8 s: the node was busy <img src=x onerror=alert(1)>", 64)
    writer = job.run("n1", "1", 98, 117, tasks=1)
    job.samples(writer, 98, 117, lambda t: 0.9, lambda t: 220)
    return job


def resized(db, job_id=4):
    """Four nodes, then two, then three; one is never used, one is not active."""
    job = Job(db, job_id, 600, name="shrinks and grows")
    job.allocation(["n1", "n2", "n3", "n4"], 0, 240, state="RESIZING")
    job.allocation(["n1", "n2"], 240, 420, state="RESIZING")
    job.allocation(["n1", "n2", "n5"], 420, 600)
    batch = job.run("n1", "batch", 0, 600, tasks=1)
    job.samples(batch, 0, 600, lambda t: 0.01, lambda t: 9)
    for path, begin, end in (("prepare", 2, 100), ("solve", 102, 420), ("post", 424, 596)):
        job.phase(batch, path, begin, end, scope="shell", cpu_s=0.3)
    for step, nodes, begin, end, busy in (("0", ["n1", "n2", "n3"], 4, 98, 7.2), ("1", ["n1", "n2"], 105, 415, 6.1),
                                          ("2", ["n1", "n2", "n5"], 428, 590, 2.2)):
        for k, node in enumerate(nodes):
            run = job.run(node, step, begin, end - k, nodes=len(nodes))
            job.samples(run, begin, end - k, lambda t, k=k, b=busy: max(0, b - k + math.sin(t / 9 + k)),
                        lambda t, k=k: 2000 + 900 * k + 8 * (t % 200))
            for i in range(6):
                first = begin + 2 + i * (end - begin - 4) / 6
                last = first + (end - begin - 4) / 6 - 1
                job.phase(run, "sweep", first, last, i + 1, cpu_s=busy * (last - first), ipc=1.2 - 0.2 * k)
                job.phase(run, "sweep/halo", last - 4, last - 1, i + 1, cpu_s=4, ipc=0.5)
    job.notice("n4", "not-active", "the plugin found no node.db folder", 1)
    return job


def many_nodes(db, nodes=512, job_id=512):
    """Many nodes, each a little later and slower than the one before; some are idle."""
    job = Job(db, job_id, 1800, name="large", requested_nodes=nodes, requested_cpus=nodes * 8)
    names = [f"node{i:04d}" for i in range(1, nodes + 1)]
    job.allocation(names, 0, 1800)
    for k, name in enumerate(names):
        if k % 100 == 77:
            continue
        run = job.run(name, "0", 5 + k % 7, 1790, nodes=nodes, period_s=20)
        late = k / nodes
        job.samples(run, 5 + k % 7, 1790, lambda t, late=late: 1 + 6 * (math.sin(t / 120 + late * 5) ** 2),
                    lambda t, late=late: 2000 + 4000 * late + t, period_s=20)
        job.phase(run, "load", 10 + k % 7, 200 + 60 * late, cpu_s=300)
        for i in range(10):
            begin = 300 + i * 145
            job.phase(run, "iterate", begin, begin + 100 + 40 * late, i + 1, cpu_s=500)
            job.phase(run, "iterate/exchange", begin + 80, begin + 98 + 40 * late, i + 1, cpu_s=40)
    return job


def odd_jobs(db):
    """Pending; without telemetry; started twice; without phases."""
    Job(db, 90, None, state="PENDING", state_reason="Priority")
    Job(db, 91, 60).allocation(["n1", "n2"], 0, 60)
    for restart, shift_s in ((0, 0), (1, 300)):
        job = Job(db, 92, 100, restart_count=restart, shift_s=shift_s, state="REQUEUED" if restart == 0 else "COMPLETED")
        job.allocation(["n1"], 0, 100)
        run = job.run("n1", "0", 2, 98)
        job.samples(run, 2, 98, lambda t: 3.0, lambda t: 500)
