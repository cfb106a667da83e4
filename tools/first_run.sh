#!/usr/bin/env bash
# From a fresh clone to a plan: installs what is missing, builds tpsim, plans BLOOM-176B on 384 GPUs.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh
cmake --preset release
cmake --build --preset release --target tpsim
build/release/tpsim plan --model bloom-176b --gpus 384
