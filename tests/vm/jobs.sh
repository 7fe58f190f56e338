# shellcheck shell=bash
# The jobs of the test, as an ordinary user, read by guest.sh. For each job NAME the results hold
# NAME.out, NAME.err, NAME.rc and NAME.job (its id).
build=/sphase/build results=/sphase/results

# job NAME COMMAND…
job() {
  local name=$1 rc=0
  shift
  runuser -u sphase_u1 -- env -C /home/sphase_u1 HOME=/home/sphase_u1 USER=sphase_u1 "$@" \
    </dev/null >"$results/$name.out" 2>"$results/$name.err" || rc=$?
  echo $rc >"$results/$name.rc"
  squeue -h -t all -n "$name" -o %A >"$results/$name.job"
  echo "guest: job $name ended with $rc after $SECONDS s"
}

recorder_pids() { pgrep -x sphase-recorder; }
no_recorder() { ! recorder_pids; }

job phases srun -J phases --phase-telemetry -c2 \
  $build/tests/lab/workload -s 600 -c 1200 -t 2 -m 64 -w 16 -d /home/sphase_u1

# Twice the same, recorded and not: nothing that a user sees may differ.
mixed='echo to stdout; echo to stderr >&2; exit 7'
job plain srun -J plain bash -c "$mixed"
job recorded srun -J recorded --phase-telemetry bash -c "$mixed"

# Where a job and its recorder are, as the job sees it.
job groups srun -J groups --phase-telemetry bash /sphase/show_groups.sh

no_recorder_within() { wait_for 15 "recorders to end" no_recorder; }
no_recorder_within || recorder_pids >"$results/recorders_left"

$build/collector/sphase-collector merge /sphase/spool-sphase --db $results/cluster.db --json \
  >$results/merge.json
$build/cli/sphase report "$(<$results/phases.job)" --db $results/cluster.db --json \
  >$results/report.json
scontrol --version >$results/slurm_version
