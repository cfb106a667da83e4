#!/usr/bin/env bash
# Checks that take too long for every change: clang-tidy over the whole tree, all tests with
# sanitizers, the tests with the label nightly without sanitizers, the long tests on the emulated
# GPU, and one hour of fuzzing. Shipped profiles must equal the output of their builders. Random plans
# with all settings and parts come back from the files of each framework. A release is made twice and
# tested, with the whole golden sample under emulation.
#
#     tools/nightly.sh [SEED [CHECKOUTS]]
#
# SEED draws the random plans (default: the date). CHECKOUTS is a folder with checkouts whose own checks
# then judge the files: Megatron-LM, Megatron-Bridge, torchtitan, torchtitan-43e52fd01 (for Llama 4),
# accelerate, transformers, DeepSpeed and Megatron-DeepSpeed.
set -euo pipefail
seed=${1:-$(date +%Y%m%d)}
checkouts=${2:-}
cd "$(dirname "$0")/.."

tools/install_packages.sh --dev
tools/tidy.sh
tools/build_profiles.py --check
tools/build_newer_profiles.py --check
cmake --preset asan
cmake --build --preset asan
ctest --preset asan
tools/fuzz.sh 60
cmake --preset release
cmake --build --preset release
ctest --preset release -L nightly  # includes the golden sample, bit for bit
for framework in "megatron-lm Megatron-LM" "nemo Megatron-Bridge Megatron-LM" "torchtitan torchtitan" \
  "accelerate accelerate/src transformers/src" "deepspeed DeepSpeed transformers/src" \
  "megatron-deepspeed DeepSpeed Megatron-DeepSpeed" nanotron; do
  read -ra words <<<"$framework"
  judges=()
  for checkout in "${words[@]:1}"; do
    [[ -z $checkouts ]] || judges+=(--check "$checkouts/$checkout")
    [[ -z $checkouts || $checkout != torchtitan ]] || judges+=(--former "llama-4=$checkouts/torchtitan-43e52fd01")
  done
  docs/validation/exports/measure.py --program build/release/tpsim --to "${words[0]}" "${judges[@]}" \
    --draw --plans 300 --seed "$seed"
done
cmake --preset emulated
cmake --build --preset emulated
ctest --preset emulated -L gpu
tools/release.sh --twice --whole-sample
