#!/usr/bin/env bash
# From a fresh clone to a plan: installs missing packages, builds tpsim, plans BLOOM-176B on 384
# GPUs. The first plan does not wait for nvcc; the next build adds the CUDA device.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh
later=()
if [[ ! -f build/release/CMakeCache.txt ]]; then later=(-DTPSIM_CUDA=AUTO); fi
cmake --preset release "${later[@]/AUTO/OFF}"
cmake --build --preset release --target tpsim
build/release/tpsim plan --model bloom-176b --gpus 384
if ((${#later[@]})); then cmake --preset release "${later[@]}" >/dev/null; fi
