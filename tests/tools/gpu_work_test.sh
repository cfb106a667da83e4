#!/usr/bin/env bash
# The table in docs/validation/gpu-work.md equals the output of tpsim_gpu_work.
#   gpu_work_test.sh TPSIM_GPU_WORK
set -euo pipefail
TPSIM_EMULATED_GPU=idle "$1" |
  diff - <(sed -n '/^| part of/,/^$/p' "$(dirname "$0")/../../docs/validation/gpu-work.md" | sed '/^$/d')
