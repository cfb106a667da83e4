#!/usr/bin/env bash
# The table in docs/validation/gpu-work.md equals the output of tpsim_gpu_tiles.
#   gpu_tiles_test.sh TPSIM_GPU_TILES
set -euo pipefail
"$1" | diff - <(sed -n '/^| attention of/,/^$/p' "$(dirname "$0")/../../docs/validation/gpu-work.md" | sed '/^$/d')
