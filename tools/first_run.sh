#!/usr/bin/env bash
# From a fresh clone to a first plan: installs missing packages, builds tpsim, and plans BLOOM-176B
# on 384 GPUs. The first build omits the CUDA device, which takes long to compile; the next build
# adds it.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh
later=()
if [[ ! -f build/release/CMakeCache.txt ]]; then later=(-DTPSIM_CUDA=AUTO); fi
cmake --preset release "${later[@]/AUTO/OFF}"
cmake --build --preset release --target tpsim
build/release/tpsim plan --model bloom-176b --gpus 384
if ((${#later[@]})); then cmake --preset release "${later[@]}" >/dev/null; fi
