#!/bin/sh
# make_tree.sh TREE SUITE MIRROR PACKAGE…: a Debian system in the folder TREE. Run as root, in a mount
# namespace of its own (vm_tree.py sees to that): whatever is still mounted at its end goes with it.
set -eu
tree=$1 suite=$2 mirror=$3
shift 3

debootstrap --variant=minbase --include=ca-certificates "$suite" "$tree" "$mirror"

# No daemon starts in here; nobody reads manuals; and if the machine dies the tree is made anew.
printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
chmod 755 "$tree/usr/sbin/policy-rc.d"
cat >"$tree/etc/dpkg/dpkg.cfg.d/sphase" <<'END'
force-unsafe-io
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/locale/*
END
for file in resolv.conf hosts; do cat "/etc/$file" >"$tree/etc/$file"; done

mount -t proc none "$tree/proc"
mount -t sysfs -o ro none "$tree/sys"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
chroot "$tree" apt-get install -q -y --no-install-recommends "$@"
chroot "$tree" apt-get clean
rm -rf "$tree"/var/lib/apt/lists/*

# Where the sources, the build and, in the guest, the run's own disk are mounted.
mkdir "$tree/src" "$tree/build" "$tree/sphase"
