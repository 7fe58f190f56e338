#!/bin/bash
# Run as a job: its own cgroup and its recorder's. The recorder leaves the job's group before the job
# begins, or, where it is slower than slurmstepd has patience, soon after.
set -euo pipefail
own=$(</proc/self/cgroup)
jobs_group=${own%%/step_*}
deadline=$((SECONDS + 10))
while pid=$(pgrep -x sphase-recorder) && group=$(<"/proc/$pid/cgroup") && ((SECONDS < deadline)); do
  [[ $group == "$jobs_group"* ]] || break
  sleep 0.1
done
echo "job $own"
echo "recorder $group"
