# shellcheck shell=bash
# The jobs of the test, as an ordinary user, read by guest.sh. For each job NAME the results hold
# NAME.out, NAME.err, NAME.rc and NAME.job (its id).
build=/sphase/build results=/sphase/results home=/home/sphase_u1
workload=$build/tests/lab/workload shapes=$build/tests/lab/shapes
cluster_db=/sphase/state-sphase/cluster.db

# job NAME COMMAND…
job() {
  local name=$1 rc=0
  shift
  runuser -u sphase_u1 -- env -C $home HOME=$home USER=sphase_u1 PATH="$build/cli:$PATH" "$@" \
    </dev/null >$results/"$name.out" 2>$results/"$name.err" || rc=$?
  echo $rc >$results/"$name.rc"
  squeue -h -t all -n "$name" -o %A >$results/"$name.job"
  echo "guest: job $name ended with $rc after $SECONDS s"
}

# batch NAME OPTIONS… <SCRIPT: submits and waits; NAME.out is what the job wrote, NAME.err what sbatch
# said.
batch() {
  local name=$1
  shift
  cat >"/tmp/$name.sh"
  job "$name" sbatch --wait -J "$name" -o "$home/$name.out" "$@" "/tmp/$name.sh"
  cp "$home/$name.out" $results/
  scontrol show job "$(<$results/"$name.job")" >$results/"$name.show"
}

sphase_collector() { $build/collector/sphase-collector "$@"; }
recorder_pids() { pgrep -x sphase-recorder; }
no_recorder() { ! recorder_pids; }

# The first marker of a program connects to the recorder: some milliseconds of an emulated CPU, which
# must be below 1 % of the first phase.
job phases srun -J phases --phase-telemetry -c2 \
  $workload -s 1000 -c 1200 -t 2 -m 64 -w 16 -d $home
for shape in memory burn forked; do
  job $shape srun -J $shape --phase-telemetry $shapes $shape
done

# Twice the same, recorded and not: nothing that a user sees may differ.
mixed='echo to stdout; echo to stderr >&2; exit 7'
job plain srun -J plain bash -c "$mixed"
job recorded srun -J recorded --phase-telemetry bash -c "$mixed"

# Where a job and its recorder are, as the job sees it.
job groups srun -J groups --phase-telemetry bash /sphase/show_groups.sh

# Killed by the kernel, and by a person.
job oom srun -J oom --phase-telemetry --mem=100 $workload -s 0 -c 900 -m 300 -w 0
job cancelled srun -J cancelled --phase-telemetry bash -c 'touch started; exec sleep 60' &
wait_for 30 "the job that will be cancelled" test -e $home/started
scancel --name=cancelled
wait $!

# A script with phases of its own around two steps.
batch script --phase-telemetry -c2 <<END
#!/bin/bash
sphase begin stage
srun -c1 -n1 $workload -s 800 -c 0 -w 0
sphase end stage
sphase run solve -- srun -c2 -n1 $workload -s 0 -c 600 -t 2 -m 64 -w 0
END

# Asks for five times what it needs; the second time slurmctld knows.
sed -i 's/^MinRuns=3/MinRuns=1/' /sphase/etc/sphase.conf
for turn in 1 2; do
  batch oversized$turn --phase-telemetry=profile=oversized --phase-resize=apply --mem=550 <<END
#!/bin/bash
$workload -s 100 -c 900 -t 1 -m 50 -w 0
END
  sphase_collector merge /sphase/spool-sphase --db $cluster_db --json >$results/merge.json
  sphase_collector learn --db $cluster_db --json >$results/learn.json
done

wait_for 15 "recorders to end" no_recorder || recorder_pids >$results/recorders_left
for name in phases script oom oversized2; do
  $build/cli/sphase report "$(<$results/$name.job)" --db $cluster_db --json >$results/$name.json
done
$build/cli/sphase why "$(<$results/oversized2.job)" --db $cluster_db >$results/why.txt
cp $cluster_db $results/
scontrol --version >$results/slurm_version
