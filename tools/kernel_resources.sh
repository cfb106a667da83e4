#!/usr/bin/env bash
# Prints registers, shared memory, stack and spills of every CUDA kernel, as reported by ptxas.
# Fails if a kernel spills registers. Needs no GPU.
#   tools/kernel_resources.sh [architecture, 90 when not given]
set -euo pipefail
cd "$(dirname "$0")/.."
architecture=${1:-90}
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

report() {
  local architecture=$architecture
  case "$1" in
    *_hopper.cu) [ "$architecture" = 90 ] || return 0; architecture=90a ;;
  esac
  "$nvcc" -std=c++20 -O3 -I. --expt-relaxed-constexpr --extended-lambda -Xptxas -v \
    -gencode "arch=compute_$architecture,code=sm_$architecture" -cubin -o /dev/null "$1" 2>&1
}

table=$(for source in kernels/cuda/*/*.cu; do report "$source"; done | c++filt | awk '
  /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
  /bytes stack frame/ { stack = $1; stores = $5 }
  /Used [0-9]+ registers/ {
    shared = 0
    for (i = 1; i < NF; ++i) if ($(i + 2) == "smem,"||$(i + 2) == "smem") shared = $i
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    gsub(/tpsim::|\(anonymous namespace\)::|void /, "", name)
    sub(/\(.*/, "", name)
    printf "%9d %8d %6d %6d  %s\n", registers, shared, stack, stores, name
  }' | sort -k5)
printf "registers   shared  stack spills  kernel (sm_%s; shared: static bytes)\n%s\n" "$architecture" "$table"
awk '$4 > 0 { spills = 1; print "spills: " $0 } END { exit spills }' <<<"$table"
