#!/bin/sh
# make_initramfs.sh INIT OUT: an initramfs with busybox, INIT as its /init, and the modules that the
# tree's kernel needs to reach a virtio disk with ext4. Runs inside the tree (chroot).
set -eu
init=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

set -- /lib/modules/*
[ $# -eq 1 ] || { echo "make_initramfs: there are $# kernels, expected one" >&2; exit 1; }
version=${1##*/}

mkdir "$work/bin" "$work/dev" "$work/proc" "$work/root" "$work/modules"
cp /bin/busybox "$work/bin/"
cp "$init" "$work/init"
chmod 755 "$work/init"

# One "insmod PATH" line for each module, in the order in which they must be loaded; what is built into
# the kernel is a line "builtin NAME". Debian 12's kernel has more modules than Debian 13's.
number=100
for module in virtio_pci virtio_blk ext4; do
  modprobe -S "$version" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
  xz -dc "$path" >"$work/modules/$number.ko"
  number=$((number + 1))
done

(cd "$work" && find . | cpio --quiet -o -H newc | gzip -1) >"$out"
