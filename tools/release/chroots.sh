#!/usr/bin/env bash
# Creates bare systems of Debian 12, 13 and 11 to test a release: FOLDER/bookworm, trixie and
# bullseye, and a copy of each with python3-venv, FOLDER/SUITE-python. Existing systems are kept.
# Needs root and access to Debian's archive.
#
# Usage: tools/release/chroots.sh FOLDER
# Exit code 4: bookworm or trixie is not available. bullseye will move to archive.debian.org. If
# neither archive has bullseye, a message reports this.
set -euo pipefail
folder=$1
mkdir -p "$folder"

bare() { # SUITE MIRROR
  rm -rf "$folder/$1.partial"
  debootstrap --variant=minbase "$1" "$folder/$1.partial" "$2" >"$folder/$1.log" 2>&1
}

with_python() { # SUITE: a copy of the bare system, with one package more
  rm -rf "$folder/$1-python.partial"
  cp --archive --reflink=auto "$folder/$1" "$folder/$1-python.partial"
  cp /etc/resolv.conf "$folder/$1-python.partial/etc/resolv.conf"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    http_proxy="${http_proxy:-}" chroot "$folder/$1-python.partial" /bin/sh -ec '
      apt-get -qq -o Acquire::Check-Valid-Until=false update
      apt-get -qq install --yes --no-install-recommends python3-venv
      apt-get clean
      rm -rf /var/lib/apt/lists/*' >"$folder/$1-python.log" 2>&1
}

cannot() { # NAME
  echo "tools/release/chroots.sh: cannot create the system $1: $(grep -E '^E' "$folder/$1.log" | tail -n 1)" >&2
}

for suite in bookworm trixie bullseye; do
  start=$SECONDS
  if [[ ! -d $folder/$suite ]]; then
    bare "$suite" http://deb.debian.org/debian ||
      { [[ $suite == bullseye ]] && bare "$suite" http://archive.debian.org/debian; } ||
      { cannot "$suite"; [[ $suite == bullseye ]] && continue; exit 4; }
    mv "$folder/$suite.partial" "$folder/$suite"
    echo "$suite: made in $((SECONDS - start)) s"
  fi
  start=$SECONDS
  if [[ ! -d $folder/$suite-python ]]; then
    with_python "$suite" || { cannot "$suite-python"; [[ $suite == bullseye ]] && continue; exit 4; }
    mv "$folder/$suite-python.partial" "$folder/$suite-python"
    echo "$suite-python: made in $((SECONDS - start)) s"
  fi
done
