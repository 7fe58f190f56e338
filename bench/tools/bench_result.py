"""What the benches in Python share: the file build/bench/NAME.json, and the figures on the terminal."""

import json
import os
import platform
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = REPO / "build" / "release"
QUICK = "--quick" in sys.argv
sys.path.insert(0, str(REPO / "tests" / "lab"))


def _cpu_model():
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def write_result(name, figures, why_null=None, **more):
    """`figures`: {key: number or None}; `why_null`: the reason for each None. `more`: further members
    of the file, such as "how"."""
    result = {"bench": name,
              "machine": {"cpus": os.cpu_count(), "kernel": platform.release(),
                          "model": _cpu_model(), "load_average": os.getloadavg()},
              "figures": figures, "why_null": why_null or {}, **more,
              "command": f"./dev bench {name}" + (" --quick" if QUICK else "")}
    out = REPO / "build" / "bench" / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=2) + "\n")
    for key, value in figures.items():
        print(f"{key:36} {'-' if value is None else format(value, '12.3f')}")
