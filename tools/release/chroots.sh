#!/usr/bin/env bash
# Bare systems of Debian 12, 13 and 11 to try a release in: FOLDER/bookworm, trixie and bullseye, and each again
# with python3-venv as FOLDER/SUITE-python. What is there already stays. Needs root and Debian's archive.
#
# Usage: tools/release/chroots.sh FOLDER
# Exit code 4 if bookworm or trixie cannot be had. bullseye moves to archive.debian.org one day; where neither
# archive answers, a line says so.
set -euo pipefail
folder=$1
mkdir -p "$folder"

# bootstrap SUITE NAME MIRROR [debootstrap's options]
bootstrap() {
  local suite=$1 name=$2 mirror=$3
  shift 3
  rm -rf "${folder:?}/$name.partial"
  debootstrap --variant=minbase "$@" "$suite" "$folder/$name.partial" "$mirror" >"$folder/$name.log" 2>&1 || return 1
  rm -rf "$folder/$name.partial"/var/cache/apt/archives/*.deb "$folder/$name.partial"/var/lib/apt/lists/*
  mv "$folder/$name.partial" "$folder/$name"
}

# make SUITE NAME [debootstrap's options]
make() {
  local suite=$1 name=$2
  shift 2
  [[ -d $folder/$name ]] && return
  local start=$SECONDS
  if ! bootstrap "$suite" "$name" http://deb.debian.org/debian "$@" &&
    ! { [[ $suite == bullseye ]] && bootstrap "$suite" "$name" http://archive.debian.org/debian "$@"; }; then
    echo "tools/release/chroots.sh: debootstrap cannot make $name: $(grep -E '^[EW]:' "$folder/$name.log" | tail -n 1)" >&2
    [[ $suite == bullseye ]]
    return
  fi
  echo "$name: made in $((SECONDS - start)) s"
}

for suite in bookworm trixie bullseye; do
  make "$suite" "$suite" || exit 4
  make "$suite" "$suite-python" --include=python3-venv || exit 4
done
