#!/usr/bin/env bash
# Checks exported scripts with bash -n and, if it is installed, with shellcheck: for every stack
# with launch files, as plain scripts, in a Slurm job and in a JobSet.
#
# Usage: tests/frameworks/launch/launch_scripts_test.sh TPSIM FOLDER
set -euo pipefail
tpsim=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

plan() { # NAME and options of simulate
  "$tpsim" simulate --model llama-3-8b --cluster dgx-h100 --global-batch 128 "${@:2}" \
    --save "$1.json" --json >/dev/null
}
plan megatron-core --stack megatron-core --tp 2 --pp 2 --dp 8
plan nemo --stack nemo --tp 2 --pp 2 --dp 8
plan torchtitan --stack torchtitan --tp 2 --dp 8 --zero 3
plan nanotron --stack nanotron --tp 2 --pp 2 --dp 4
plan accelerate --stack pytorch-fsdp --dp 16 --zero 3 --recompute full
plan deepspeed --stack deepspeed-zero3 --tp 2 --dp 8 --zero 3 --recompute full
"$tpsim" simulate --model bloom-176b --tp 4 --pp 12 --dp 8 --recompute full --save \
  megatron-deepspeed.json --json >/dev/null

scripts=()
export_to() { # PLAN STACK
  "$tpsim" export "$1.json" --to "$2" -o "$1-$2" >/dev/null
  if [[ $2 == kubernetes ]]; then # the script inside the JobSet is indented by 22 columns
    { echo '#!/bin/bash'; sed -n '/args:/,/resources:/s/^ \{22\}//p' "$1-$2/jobset.yaml"; } >"$1-$2/container.sh"
  fi
  scripts+=("$1-$2"/*.s*h "$1-$2"/*.slurm)
}
shopt -s nullglob
for own in megatron-core nemo torchtitan nanotron accelerate deepspeed megatron-deepspeed; do
  for stack in "${own/megatron-core/megatron-lm}" slurm kubernetes; do export_to $own "$stack"; done
done
((${#scripts[@]} == 21)) || { echo "${#scripts[@]} scripts, not 21: ${scripts[*]}" >&2; exit 1; }
for script in "${scripts[@]}"; do bash -n "$script"; done
if ! command -v shellcheck >/dev/null; then
  echo "bash reads them all; shellcheck skipped: it is not installed"
  exit 0
fi
shellcheck "${scripts[@]}"
echo "bash and shellcheck read ${#scripts[@]} scripts"
