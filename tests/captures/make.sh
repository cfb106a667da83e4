#!/usr/bin/env bash
# Makes the captured steps that tests read, or compares them with those of this machine's PyTorch.
#
# Usage: tests/captures/make.sh [--check] [PYTHON]    PYTHON has the packages of requirements.txt
set -euo pipefail
cd "$(dirname "$0")"
check=
if [[ ${1:-} == --check ]]; then
  check=1
  shift
fi
python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for program in programs/*.py; do
  name=$(basename "$program" .py)
  world=1
  [[ $name != *_ddp && $name != *_fsdp ]] || world=8
  PYTHONPATH=../../python "$python" -m tpsim_capture --world "$world" --out "$folder/$name.json" "$program"
  if [[ -n $check ]]; then
    cmp "$folder/$name.json" "$name.json"
  else
    cp "$folder/$name.json" .
  fi
done
