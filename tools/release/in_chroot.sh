#!/usr/bin/env bash
# Runs a command as user nobody in an isolated system: read-only root, empty /tmp, no network, no
# other processes.
#
# Usage: tools/release/in_chroot.sh ROOT FILES SETUP COMMAND [ARGUMENT...]
# ROOT is not changed, because everything runs in an overlay. The folder FILES is visible as
# /release. SETUP is a shell line that root runs before the root folder becomes read-only; empty for
# none. The last line on standard error is the time of COMMAND in seconds. The exit code is that of
# COMMAND.
set -euo pipefail
if [[ ${1:-} != --inside ]]; then
  exec unshare --mount --net --pid --fork --kill-child -- "$0" --inside "$@"
fi
root=$2 files=$3 setup=$4
shift 4

space=$(mktemp -d) # mounts below it exist in this mount namespace only
trap 'umount --lazy "$space"; rmdir "$space"' EXIT
mount -t tmpfs -o size=2g tmpfs "$space"
mkdir "$space"/{upper,work,root}
mount -t overlay -o "lowerdir=$root,upperdir=$space/upper,workdir=$space/work" overlay "$space/root"
mkdir -p "$space"/root/{release,proc,tmp}
mount --bind "$files" "$space/root/release"
mount -t proc proc "$space/root/proc"
mount -t tmpfs -o mode=1777,size=1g tmpfs "$space/root/tmp"

system() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 chroot "$@"; }
if [[ -n $setup ]]; then system "$space/root" /bin/sh -ec "$setup" >"$space/setup.log" 2>&1 || {
  cat "$space/setup.log" >&2
  exit 1
}; fi
mount -o remount,ro "$space/root"
mount -o remount,ro,bind "$space/root/release"
if touch "$space/root/probe" 2>/dev/null || [[ $(tail -n +3 /proc/net/dev | grep -cv '^ *lo:') != 0 ]]; then
  echo "tools/release/in_chroot.sh: the system is writable or has a network" >&2
  exit 1
fi

code=0
start=$(date +%s%N)
system --userspec=65534:65534 --groups=65534 "$space/root" "$@" || code=$?
printf '%d.%02d\n' $((($(date +%s%N) - start) / 1000000000)) $((($(date +%s%N) - start) / 10000000 % 100)) >&2
exit "$code"
