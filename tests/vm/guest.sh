#!/bin/bash
# Process 1 of the guest: a unified cgroup hierarchy, a Slurm cluster of one node, then jobs.sh. What
# came of it stays in /sphase/results, on the disk that the host reads afterwards.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 SLURM_CONF=/sphase/etc/slurm.conf
results=/sphase/results

finish() {
  echo "$1" >$results/guest_rc
  echo "guest: ended with $1 after $SECONDS s"
  sync
  busybox poweroff -f
}
trap 'finish $?' EXIT

# wait_for SECONDS WHAT COMMAND…
wait_for() {
  local limit=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS > limit)); then echo "guest: waited in vain for $what"; return 1; fi
    busybox sleep 0.1
  done
}

mounts() {
  mount -t proc none /proc
  mount -t sysfs none /sys
  mount -t tmpfs -o mode=755 none /run
  mount -t tmpfs none /tmp
  chmod 1777 /tmp
  mkdir -p /dev/pts /dev/shm
  mount -t devpts none /dev/pts
  mount -t tmpfs none /dev/shm
  mount -t cgroup2 none /sys/fs/cgroup
}

# Processes outside of the root group: Slurm takes the group of slurmd as where its own tree begins.
cgroups() {
  mkdir /sys/fs/cgroup/daemons
  echo $$ >/sys/fs/cgroup/daemons/cgroup.procs
  echo "+cpu +memory +cpuset +pids" >/sys/fs/cgroup/cgroup.subtree_control
}

# A name that leads to an address that is not of the loopback range: else slurmctld finds none.
network() {
  busybox hostname vm1
  echo "127.0.0.1 localhost
192.0.2.1 vm1" >/etc/hosts
  busybox ip link set lo up
  busybox ip addr add 192.0.2.1/32 dev lo
}

users() {
  useradd --user-group --home-dir /home/sphase_u1 --create-home --shell /bin/bash sphase_u1
}

node_is_idle() { [[ $(sinfo -h -o %T) == idle ]]; }

daemons() {
  mkdir -p /run/munge /run/slurm/state /run/slurm/spool /sphase/spool-sphase /sphase/state-sphase
  chown munge:munge /run/munge
  runuser -u munge -- munged
  slurmctld
  slurmd
  wait_for 60 "the node to be idle" node_is_idle
}

echo "guest: Linux $(busybox uname -r)"
mounts
cgroups
network
users
daemons
echo "guest: node is idle after $SECONDS s"
# shellcheck source-path=SCRIPTDIR source=jobs.sh
source /sphase/jobs.sh
