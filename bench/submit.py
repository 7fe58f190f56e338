#!/usr/bin/env python3
"""./dev bench submit: what job_submit/phase_resize costs slurmctld at each submission.

First the hook alone, in a fake slurmctld (bench/submit/hook.cpp). Then a lab's real slurmctld with
100 000 profiles, with no job_submit plugin, ours, and Slurm's job_submit/lua doing the same lookup
(bench/submit/job_submit.lua): one client submits held jobs one after the other as an ordinary user
(bench/submit/load.c). The configurations take turns in short blocks, `scontrol reconfigure` between
them, so that the ratios of a round are paired; none is truly none there. At last all take turns at
random job by job inside one slurmctld, under the same stop-watch (bench/submit/timer.c): far less
noise, and what each job's RPC took beside it.

slurmctld writes no accounting (but for mixed_accounted_*) and keeps its state in memory: a submission
is then as cheap as it can be, and the plugin's share as large. --quick is the hook alone.
"""

import array
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from bench_result import BUILD, QUICK, REPO, percentile, write_result

from lab import Lab, USERS

PROFILES = 100_000
CALLS = 100_000
ROUNDS = 24
ROUNDS_PER_SLURMCTLD = 6  # its queue grows with each
SUBMISSIONS = 250  # of each configuration in a round
MIXED = 12_000  # job by job, of all configurations together
SBATCH_EACH = 600  # of each configuration, by Slurm's own sbatch, in random turn
WARM_UP = 100
PLUGINS = {"none": None, "ours": "phase_resize", "lua": "lua"}
# The lab's scheduler looks at the queue each second, which no site does.
LAB_CONF = ["MaxJobCount=100000", "SlurmctldDebug=info", "SchedulerParameters=defer"]

LUA_HOW = (f"job_submit() of job_submit_lua.so, timed inside the lab's slurmctld by a plugin that hands"
           f" the job on (bench/submit/timer.c), as hook_slurmctld_*; a Lua table of {PROFILES}"
           " profiles; the script makes no plan, ours does")
MIXED_HOW = ("jobs of all three configurations in random turn in one slurmctld; mean RPC time without a"
             " plugin / with it. mixed_accounted_*: the same with slurmdbd")
HOOK_HOW = ("clock_gettime around job_submit() in a fake slurmctld; one thread, table in the page"
            " cache; half of the calls find a named profile, half the hash of a 2 KB script."
            " hook_paused_*: after a sleep of 1 ms each")


# --- the hook alone -------------------------------------------------------------------------------

def measure_hook(calls):
    done = subprocess.run([BUILD / "bench" / "bench_submit_hook", str(calls), str(PROFILES)],
                          stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    large, small = found["large"], found["small"]
    return {"hook_p50_us": large["p50_us"], "hook_p99_us": large["p99_us"],
            "hook_p999_us": large["p999_us"], "hook_max_us": large["max_us"],
            "hook_calls": large["calls"], "hook_calls_above_1ms": large["above_1ms"],
            "hook_cpu_p50_us": large["cpu_p50_us"], "hook_cpu_p99_us": large["cpu_p99_us"],
            "hook_cpu_max_us": large["cpu_max_us"],
            "hook_named_p50_us": found["large_named"]["p50_us"],
            "hook_named_p99_us": found["large_named"]["p99_us"],
            "hook_hashed_p50_us": found["large_hashed"]["p50_us"],
            "hook_hashed_p99_us": found["large_hashed"]["p99_us"],
            "hook_small_table_p50_us": small["p50_us"], "hook_small_table_p99_us": small["p99_us"],
            "hook_small_table_max_us": small["max_us"],
            "hook_paused_p50_us": found["paused"]["p50_us"],
            "hook_paused_p99_us": found["paused"]["p99_us"],
            "hook_rss_growth_kib": found["rss_growth_kib"], "table_profiles": found["profiles"]}


# --- a real slurmctld -----------------------------------------------------------------------------

class SubmitLab:
    """A lab whose slurmctld begins anew, without jobs, for each measurement."""

    def __init__(self, lab):
        self.lab = lab
        self.times = lab.dir / "times"
        [plugins] = re.findall(r"^PluginDir=(.*)$", lab.slurm_conf.read_text(), re.MULTILINE)
        self.slurms_own = Path(plugins.split(":")[0])
        lab.set_conf(f"PluginDir={plugins}:{lab.build}/bench",
                     "AccountingStorageType=accounting_storage/none")
        self.uid = lab.run(["id", "-u", USERS[0]], check=True).stdout.strip()
        self._write_table()
        script = (REPO / "bench" / "submit" / "job_submit.lua").read_text()
        (lab.dir / "etc" / "job_submit.lua").write_text(
            script.replace("@UID@", self.uid).replace("@PROFILES@", str(PROFILES)))

    def _write_table(self):
        lines = (f"{self.uid}/p{i} nodes=1 memory_mib=320 peak_mib=250 time_s=900"
                 " phase=stage:1:200 phase=solve:4:320 phase=post:1:200\n" for i in range(PROFILES))
        self.lab.run([self.lab.build / "tests" / "job_submit" / "write_table",
                      self.lab.dir / "state-sphase" / "advice.cdb"], input="".join(lines),
                     check=True)

    def set_plugin(self, plugin):
        """Writes slurm.conf. None: no line, which is no job_submit plugin at all."""
        lab = self.lab
        lines = [line for line in lab.slurm_conf.read_text().splitlines()
                 if not line.startswith("JobSubmitPlugins=")]
        lab._replace(lab.slurm_conf, "\n".join(lines) + "\n")
        if plugin:
            lab.set_conf(f"JobSubmitPlugins={plugin}")

    def restart(self, plugin, env=None):
        """A slurmctld that knows of no job, with this plugin."""
        lab = self.lab
        lab.slurmctld_stop()
        for path in (lab.dir / "state").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.set_plugin(plugin)
        lab.slurmctld_restart(env)
        lab.wait_idle()

    def switch(self, plugin):
        self.set_plugin(plugin)
        self.lab.run(["scontrol", "reconfigure"], check=True)
        time.sleep(1)  # the nodes register anew, which is nobody's submission

    def load(self, count, seed, *names):
        done = self.lab.run_as(USERS[0], [self.lab.build / "bench" / "bench_submit_load", count,
                                          PROFILES, seed, *names], timeout=300, check=True)
        found = json.loads(done.stdout)
        if found["failed"]:
            raise RuntimeError(f"{found['failed']} of {count} submissions failed: {done.stderr}")
        return found

    def check_sizes(self, nodes):
        """The last job has the nodes that the configuration gives it."""
        job = self.lab.run(["squeue", "-h", "-S", "-i", "-o", "%D"], check=True).stdout.split()[0]
        if int(job) != nodes:
            raise RuntimeError(f"a job has {job} nodes, not {nodes}: the plugin did not answer")

    def rss_mib(self):
        pid = self.lab.status()["daemons"]["slurmctld"]["pid"]
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024

    def throughput(self, name, seed):
        self.switch(PLUGINS[name])
        self.load(WARM_UP, seed)
        found = self.load(SUBMISSIONS, seed + 1)
        found.update(found["by_name"]["solver"])
        self.check_sizes(2 if name == "none" else 1)
        return found

    def mixed(self, seed):
        """What load.c says about jobs of all configurations in turn, and the us of each call of
        job_submit() by configuration."""
        self.times.unlink(missing_ok=True)
        self.restart("bench_timer",
                     {"SPHASE_BENCH_OURS": f"{self.lab.build}/job_submit/job_submit_phase_resize.so",
                      "SPHASE_BENCH_LUA": f"{self.slurms_own}/job_submit_lua.so",
                      "SPHASE_BENCH_TIMES": str(self.times)})
        for name in PLUGINS:
            self.load(WARM_UP, seed, name)
            self.check_sizes(2 if name == "none" else 1)
        found = self.load(MIXED, seed + 1, *PLUGINS)
        return found["by_name"], {"ours": self._hook_us(0), "lua": self._hook_us(1)}

    def sbatch_ms(self):
        """ms from start to end of each sbatch, by configuration, in the slurmctld of mixed()."""
        took = {name: [] for name in PLUGINS}
        turns = [name for name in PLUGINS for _ in range(SBATCH_EACH)]
        random.Random(1).shuffle(turns)
        for number, name in enumerate(turns):
            command = ["sbatch", "--hold", "-J", name, "-N2", "--mem=800", "--phase-resize=apply",
                       f"--phase-telemetry=profile=p{number * 7919 % PROFILES}"]
            began = time.monotonic()
            done = self.lab.run_as(USERS[0], command, input="#!/bin/bash\nhostname\n")
            took[name].append((time.monotonic() - began) * 1000)
            if done.rc:
                raise RuntimeError(done.stderr)
        return took

    def _hook_us(self, number):
        """The times of one plugin in timer.c's file, without the warm-up."""
        both = self.times.read_bytes()
        half = len(both) // 2
        numbers = array.array("Q", both[number * half:(number + 1) * half])
        return [ns / 1000 for ns in numbers[1 + WARM_UP:1 + numbers[0]]]


def throughput_figures(rounds):
    """`rounds`: a list of {configuration: what load.c printed}."""
    figures = {}
    for name in PLUGINS:
        suffix = "" if name == "ours" else f"_{name}"
        for key, shown in (("submits_per_s", "submits_per_s"), ("p50_us", "rpc_p50_us"),
                           ("p99_us", "rpc_p99_us")):
            figures[shown + suffix] = statistics.median(one[name][key] for one in rounds)
    for name in ("ours", "lua"):
        ratios = [one[name]["submits_per_s"] / one["none"]["submits_per_s"] for one in rounds]
        more_us = [one[name]["p50_us"] - one["none"]["p50_us"] for one in rounds]
        key = "submits" if name == "ours" else "lua"
        figures[f"{key}_ratio"] = statistics.median(ratios)
        figures[f"{key}_ratio_quartile_low"] = percentile(ratios, 0.25)
        figures[f"{key}_ratio_quartile_high"] = percentile(ratios, 0.75)
        figures[f"{key}_rpc_p50_added_us"] = statistics.median(more_us)
    return figures


def measure_rounds(bench):
    names = list(PLUGINS)
    rounds = []
    for number in range(ROUNDS):
        if number % ROUNDS_PER_SLURMCTLD == 0:
            bench.restart(None)
        turn = names[number % 3:] + names[:number % 3]
        if number % 6 >= 3:
            turn.reverse()  # so that each follows each other as often
        rounds.append({name: bench.throughput(name, number * 10) for name in turn})
        print(f"round {number + 1}/{ROUNDS}: " + ", ".join(
            f"{name} {rounds[-1][name]['submits_per_s']:.0f}/s" for name in names), flush=True)
    return {**throughput_figures(rounds), "rounds": ROUNDS, "submissions_per_round": SUBMISSIONS}


def measure_mixed(bench):
    by_name, hooks = bench.mixed(1000)
    figures = {"mixed_submissions": MIXED}
    for key, name in (("hook_slurmctld", "ours"), ("lua", "lua")):
        for text, share in (("p50", 0.5), ("p99", 0.99), ("max", 1)):
            figures[f"{key}_{text}_us"] = percentile(hooks[name], share)
        figures[f"{key}_calls_above_1ms"] = sum(us > 1000 for us in hooks[name])
    figures.update(mixed_figures("mixed", by_name))
    took = bench.sbatch_ms()
    for name in PLUGINS:
        figures["sbatch_p50_ms" + ("" if name == "ours" else f"_{name}")] = statistics.median(
            took[name])
    for name in ("ours", "lua"):
        figures["sbatch_ratio" + ("" if name == "ours" else f"_{name}")] = (
            statistics.median(took["none"]) / statistics.median(took[name]))
    bench.lab.set_conf("AccountingStorageType=accounting_storage/slurmdbd")
    figures.update(mixed_figures("mixed_accounted", bench.mixed(2000)[0]))
    bench.lab.set_conf("AccountingStorageType=accounting_storage/none")
    return figures


def mixed_figures(key, by_name):
    figures = {}
    for name in PLUGINS:
        suffix = "" if name == "ours" else f"_{name}"
        figures[f"{key}_rpc_p50_us{suffix}"] = by_name[name]["p50_us"]
        figures[f"{key}_rpc_mean_us{suffix}"] = by_name[name]["mean_us"]
    for name in ("ours", "lua"):
        suffix = "" if name == "ours" else f"_{name}"
        figures[f"{key}_ratio{suffix}"] = by_name["none"]["mean_us"] / by_name[name]["mean_us"]
        figures[f"{key}_p50_ratio{suffix}"] = by_name["none"]["p50_us"] / by_name[name]["p50_us"]
    return figures


def measure_memory(bench):
    """MiB of slurmctld with each plugin."""
    figures = {}
    for name, plugin in PLUGINS.items():
        bench.restart(plugin)
        bench.load(WARM_UP, 1)
        figures["slurmctld_rss_mib" + ("" if name == "ours" else f"_{name}")] = bench.rss_mib()
    return figures


def measure_lab():
    with Lab("bench", nodes=2, conf=LAB_CONF, build=BUILD) as lab:
        state = lab.dir / "state"
        lab.slurmctld_stop()
        lab.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=0700", "none", state], check=True)
        try:
            bench = SubmitLab(lab)
            return {**measure_rounds(bench), **measure_mixed(bench), **measure_memory(bench)}
        finally:
            lab.slurmctld_stop()
            lab.run(["umount", "--lazy", state], check=True)


LAB_KEYS = ("submits_per_s", "submits_per_s_none", "submits_per_s_lua", "submits_ratio",
            "mixed_ratio", "sbatch_ratio", "lua_p50_us", "lua_p99_us")


# --- the result -----------------------------------------------------------------------------------

def targets(figures):
    """(what, value, target, met) of what was measured."""
    growth = figures["hook_p50_us"] / figures["hook_small_table_p50_us"]
    rows = [("hook p99, us", figures["hook_p99_us"], "<= 50", figures["hook_p99_us"] <= 50),
            ("  after a sleep of 1 ms each", figures["hook_paused_p99_us"], "<= 50",
             figures["hook_paused_p99_us"] <= 50),
            ("hook max, us", figures["hook_max_us"], "<= 1000", figures["hook_max_us"] <= 1000),
            ("  of it calls above 1 ms", figures["hook_calls_above_1ms"], "0",
             figures["hook_calls_above_1ms"] == 0),
            ("  max of the thread's CPU time, us", figures["hook_cpu_max_us"], "<= 1000",
             figures["hook_cpu_max_us"] <= 1000),
            ("hook p50, 100 000 / 1 000 profiles", growth, "<= 1.2", growth <= 1.2),
            ("hook RSS growth, KiB", figures["hook_rss_growth_kib"], "<= 1024",
             figures["hook_rss_growth_kib"] <= 1024)]
    ratio = figures.get("submits_ratio")
    if ratio is not None:
        mixed = figures["mixed_ratio"]
        inside_us = figures["hook_slurmctld_p99_us"]
        rows += [("hook p99 in a real slurmctld, us", inside_us, "<= 50", inside_us <= 50),
                 ("submissions/s by sbatch, ours / none", figures["sbatch_ratio"], ">= 0.98",
                  figures["sbatch_ratio"] >= 0.98),
                 ("submissions/s, ours / none, by rounds", ratio, ">= 0.98", ratio >= 0.98),
                 ("submissions/s, ours / none, job by job", mixed, ">= 0.98", mixed >= 0.98)]
    return rows


def main():
    load_before = os.getloadavg()
    figures = measure_hook(10_000 if QUICK else CALLS)
    why = ("left out by --quick" if QUICK else
           "a lab needs root" if os.geteuid() != 0 else None)
    figures.update(dict.fromkeys(LAB_KEYS) if why else measure_lab())
    write_result("submit", figures, {key: why for key in LAB_KEYS if figures[key] is None},
                 load_average_before=load_before,
                 how={"hook_p99_us": HOOK_HOW, "lua_p99_us": LUA_HOW, "mixed_ratio": MIXED_HOW,
                      "submits_per_s": "one client, one submission after the other, held jobs;"
                                       " median of the rounds; submits_ratio is the median of the"
                                       " ratios within a round"})
    print()
    for what, value, target, met in targets(figures):
        print(f"{what:40} {value:12.3f}   {target:8} {'met' if met else 'MISSED'}")


if __name__ == "__main__":
    main()
