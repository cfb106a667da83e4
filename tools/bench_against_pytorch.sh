#!/usr/bin/env bash
# Trains one model with tpsim and with PyTorch, in alternating rounds on the same core. Prints both
# step times, their ratio (above 1: tpsim is faster), and the GEMM kernels that ran. Fails if the
# losses differ. Debian's PyTorch is the default; a pip wheel is compared with --python.
#
# Usage: tools/bench_against_pytorch.sh [--rounds N] [--steps N] [--core N] [--tpsim FILE]
#                                       [--python FILE]
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=3 steps=8 core=0 tpsim=build/release/tpsim
python=/usr/bin/python3 # Debian's Python packages are installed for this Python
while (($#)); do
  case $1 in
    --rounds) rounds=$2 ;;
    --steps) steps=$2 ;;
    --core) core=$2 ;;
    --tpsim) tpsim=$2 ;;
    --python) python=$2 ;;
    *) echo "tools/bench_against_pytorch.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
# Variables that hold a library to kernels of older processors.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE MKL_ENABLE_INSTRUCTIONS MKL_DEBUG_CPU_TYPE \
  ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA ATEN_CPU_CAPABILITY
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo "tools/bench_against_pytorch.sh: $python has no PyTorch: run apt-get install python3-torch, or give --python" >&2
  exit 4
fi
# Requires a fast BLAS, as PyTorch's users have. Debian's PyTorch uses any installed BLAS.
if ! "$python" -c 'import torch
torch.ones(2, 2) @ torch.ones(2, 2)
maps = open("/proc/self/maps").read()
exit(not (torch.backends.mkl.is_available() or "libopenblas" in maps or "libblis" in maps))'; then
  echo "tools/bench_against_pytorch.sh: PyTorch uses the slow reference BLAS, so that the comparison is not fair: run apt-get install libopenblas0-pthread" >&2
  exit 4
fi
if [[ ! -x $tpsim ]]; then
  echo "tools/bench_against_pytorch.sh: $tpsim does not exist: run make build" >&2
  exit 4
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

bench() { # hidden layers heads
  local shape=(--hidden "$1" --layers "$2" --heads "$3" --seq 128 --vocab 2048 --batch 8
    --micro-batch 4 --steps "$steps")
  local here=$folder/$1 side=("$python" tools/bench_against_pytorch.py)
  "${side[@]}" prepare "$here" "${shape[@]}"
  local ours=("$tpsim" run --checkpoint "$here" --tokens "$here/tokens.safetensors"
    --global-batch 8 --micro-batch 4 --steps "$steps" --dtype fp32 --lr 1e-3
    --weight-decay 0.1 --clip-grad 1 --json)
  for ((round = 0; round < rounds; ++round)); do
    taskset -c "$core" "${ours[@]}" >"$here/tpsim-$round"
    taskset -c "$core" "${side[@]}" train "$here" "${shape[@]}" >"$here/torch-$round"
  done
  "${side[@]}" compare "$here" "${shape[@]}"
}
"$python" tools/bench_against_pytorch.py kernels "$tpsim"
bench 256 4 4
bench 512 8 8
