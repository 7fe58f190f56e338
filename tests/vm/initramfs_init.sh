#!/bin/busybox sh
# shellcheck shell=dash
# /init of the guest's initramfs: loads the disk's driver, mounts the Debian tree (vda) and the run's
# own disk (vdb), and becomes the guest program.
busybox=/bin/busybox

die() {
  echo "initramfs: $1"
  $busybox poweroff -f
}

$busybox mount -t devtmpfs none /dev || die "no devtmpfs"
for module in /modules/*.ko; do $busybox insmod "$module" || die "cannot load $module"; done

# The driver finds its disks in its own time.
tries=0
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do
  tries=$((tries + 1))
  [ $tries -le 300 ] || die "no disks after 30 s"
  $busybox sleep 0.1
done

$busybox mount -t ext4 /dev/vda /root || die "cannot mount the tree"
$busybox mount -t ext4 /dev/vdb /root/sphase || die "cannot mount the run's disk"
$busybox mount --move /dev /root/dev || die "cannot move /dev"
exec $busybox switch_root /root /sphase/guest.sh
