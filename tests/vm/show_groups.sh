#!/bin/bash
# Run as a job: its own cgroup and, once its recorder is there, the recorder's.
set -euo pipefail
echo "job $(</proc/self/cgroup)"
deadline=$((SECONDS + 20))
until pid=$(pgrep -x sphase-recorder); do
  ((SECONDS <= deadline)) || exit 1
  sleep 0.1
done
echo "recorder $(</proc/"$pid"/cgroup)"
