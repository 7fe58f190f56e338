"""Builds the project inside the tree, against the tree's Slurm, at the speed of the host."""

import os
from pathlib import Path

from vm_tools import CACHE, REPO, run_unshared, say
from vm_tree import tree_key

TARGETS = ("phase_telemetry", "sphase-recorder", "job_submit_phase_resize",
           "sphase_marker_shared", "sphase", "sphase-collector", "workload", "shapes")
# Where they stand in the build folder.
PRODUCTS = ("spank/phase_telemetry.so", "spank/recorder/sphase-recorder",
            "job_submit/job_submit_phase_resize.so", "cli/sphase", "collector/sphase-collector",
            "tests/lab/workload", "tests/lab/shapes")

# sh -c CHROOT sh TREE SOURCE BUILD COMMAND…: the tree's own view, sources read-only.
CHROOT = """set -eu
tree=$1 source=$2 build=$3
shift 3
mount -t proc none "$tree/proc"
mount --rbind /dev "$tree/dev"
mount --bind "$source" "$tree/src"
mount -o remount,bind,ro "$tree/src"
mount --bind "$build" "$tree/build"
export LC_ALL=C.UTF-8 CCACHE_DIR=/build/ccache PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec chroot "$tree" "$@"
"""


def in_tree(tree_dir: Path, source: Path, build: Path, command, log: Path) -> None:
    """Runs a command as root of the tree, with `source` at /src and `build` at /build."""
    run_unshared(["sh", "-c", CHROOT, "sh", tree_dir, source, build, *command], log)


def build_in(tree_dir: Path) -> Path:
    """The build folder, with PRODUCTS in it."""
    build = CACHE / f"build-{tree_key()}"
    build.mkdir(parents=True, exist_ok=True)
    say("building the project in the tree")
    configure = ["cmake", "-S", "/src", "-B", "/build", "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=Release", "-DSPHASE_BENCH=OFF",
                 "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    in_tree(tree_dir, REPO, build, configure, CACHE / "log" / "configure.log")
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or os.cpu_count() or 1
    in_tree(tree_dir, REPO, build, ["cmake", "--build", "/build", "-j", jobs, "--target", *TARGETS],
            CACHE / "log" / "build.log")
    return build
