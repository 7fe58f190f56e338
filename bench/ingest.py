#!/usr/bin/env python3
"""./dev bench ingest: rows per second from the wire into cluster.db, and what serve holds in memory.

A real `sphase-collector serve` with a munged of its own. bench/ingest/nodes.cpp is 200 nodes at once,
each shipping sealed samples that are all different; half of them break their connection in the middle
of a shipment and come back. The limit beside it is SQLite's own bulk insert of the same rows into the
same table, one row each, in the same run. Afterwards the rows are counted: none may be lost, none
there twice. A row is one sample; 512 of them are a segment. Then 10 000 nodes that say nothing, and
the cost per row as the database grows.
"""

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, write_result

import lab_daemons
import lab_setup
from lab_procs import free_ports, port_listens, socket_answers, wait_for

NODES = 200
SEGMENTS = 8  # of a shipment
ROWS = 512
PROGRAM = BUILD / "bench" / "bench_ingest_nodes"


@contextmanager
def munged(folder):
    for name in ("munge", "munge-key", "run", "log"):
        (folder / name).mkdir(mode=0o700 if name == "munge-key" else 0o755)
    folder.chmod(0o755)
    lab_setup.make_munge_key(folder)
    daemon = subprocess.Popen(lab_daemons.argv("munged", folder), stderr=subprocess.DEVNULL)
    try:
        socket = folder / "munge" / "socket"
        wait_for(lambda: socket_answers(socket), 10, "munged to answer")
        yield socket
    finally:
        daemon.terminate()
        daemon.wait(timeout=10)


@contextmanager
def serve(folder, socket):
    """A collector with a new database; (process, port, path of the database)."""
    port = free_ports(1)[0]
    conf, database = folder / "sphase.conf", folder / "cluster.db"
    conf.write_text(f"Collector=127.0.0.1:{port}\nCollectorAddress=127.0.0.1\n"
                    f"MungeSocket={socket}\nTrustedUsers=root\nAdviceTable={folder}/advice.cdb\n"
                    "WatchInterval=86400\n")
    log = (folder / "serve.log").open("w")
    daemon = subprocess.Popen([BUILD / "collector" / "sphase-collector", "serve", "--no-records",
                               "--conf", conf, "--db", database], stderr=log)
    try:
        wait_for(lambda: port_listens(port), 10, "serve to listen")
        yield daemon, port, database
    finally:
        daemon.terminate()
        daemon.wait(timeout=60)
        log.close()


def nodes(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def rss_mb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("serve has ended")


def count(database):
    """(rows, segments, different segments) of what was stored."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        return db.execute("SELECT coalesce(sum(rows), 0), count(*), count(DISTINCT run_id || '/' ||"
                          " sealed_ns) FROM segment").fetchone()


def one_round(folder, socket, shipments, plain_rows):
    """Rows per second of the wire and of SQLite alone, in turn on the same disk."""
    with serve(folder, socket) as (_, port, database):
        wire = nodes("ship", port, socket, NODES, shipments, SEGMENTS)
        rows, segments, different = count(database)
    expected = NODES * shipments * SEGMENTS * ROWS
    if (rows, segments) != (expected, different):
        raise RuntimeError(f"{rows} rows in {segments} segments, {different} different; shipped were"
                           f" {expected} rows")
    plain = nodes("plain", folder / "plain.db", plain_rows)
    return wire, plain


def idle_memory(folder, socket, connections):
    with serve(folder, socket) as (daemon, port, _):
        before = rss_mb(daemon.pid)
        holder = subprocess.Popen([PROGRAM, "idle", str(port), socket, str(connections)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if holder.stdout.readline().strip() != "ready":
                raise RuntimeError("the nodes did not come up")
            return before, rss_mb(daemon.pid)
        finally:
            holder.communicate()


def growth(folder, socket, decades):
    """[(rows in the database, rows per second of the last part)] as one database grows."""
    curve = []
    with serve(folder, socket) as (_, port, database):
        total = 0
        for rows in decades:
            shipments = max(1, round((rows - total) / (NODES * SEGMENTS * ROWS)))
            wire = nodes("ship", port, socket, NODES, shipments, SEGMENTS, len(curve))
            total += int(wire["rows"])
            curve.append((count(database)[0], wire["rows_per_s"]))
            if curve[-1][0] != total:
                raise RuntimeError(f"{curve[-1][0]} rows of {total}")
    return curve


def in_folder(work, *arguments):
    with tempfile.TemporaryDirectory(prefix="sphase-bench-") as folder:
        return work(Path(folder), *arguments)


def main():
    rounds, shipments, plain_rows = (1, 2, 200_000) if QUICK else (5, 6, 1_000_000)
    connections = 500 if QUICK else 10_000
    decades = (10**6,) if QUICK else (10**6, 10**7, 10**8)
    with tempfile.TemporaryDirectory(prefix="sphase-bench-") as folder:
        with munged(Path(folder)) as socket:
            pairs = [in_folder(one_round, socket, shipments, plain_rows) for _ in range(rounds)]
            before, rss = in_folder(idle_memory, socket, connections)
            curve = in_folder(growth, socket, decades)
    figures = {
        "rows_per_s": statistics.median(wire["rows_per_s"] for wire, _ in pairs),
        "sqlite_bulk_rows_per_s": statistics.median(plain["rows_per_s"] for _, plain in pairs),
        "ratio": statistics.median(wire["rows_per_s"] / plain["rows_per_s"]
                                   for wire, plain in pairs),
        "wire_mb_per_s": statistics.median(wire["wire_mb_per_s"] for wire, _ in pairs),
        "rss_mb_before": before,
        f"rss_mb_{connections}_connections": rss,
    }
    for rows, rows_per_s in curve:
        figures[f"rows_per_s_at_{rows:.0e}"] = rows_per_s
    write_result("ingest", figures)


if __name__ == "__main__":
    main()
