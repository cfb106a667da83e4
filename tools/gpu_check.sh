#!/usr/bin/env bash
# What a GPU has to show, on a bare machine with NVIDIA's driver and Python's CUDA packages. Runs a
# bundle that tools/gpu_bundle.sh made; builds nothing and needs no network.
#   BUNDLE/gpu_check.sh STAGE OUT
# STAGE, each under ten minutes:
#   look      the machine and what the programs find on it
#   tests     every op case and the golden runs, then a part of them under compute-sanitizer
#   profile   tpsim profile --device cuda, which writes OUT/profile.json
#   validate  single-GPU plans and real ranks of BLOOM-176B, predicted and run
#   speed     each kernel against the copy rate, and blocks and steps against PyTorch
# OUT receives small text files. Exit code 4: there is no GPU.
set -uo pipefail
bundle=$(cd "$(dirname "$0")" && pwd)
stage=${1:?stage: look, tests, profile, validate or speed}
out=${2:?a folder for the results}
mkdir -p "$out"

# Python's wheels of NVIDIA bring cuBLASLt and NCCL where there is no toolkit.
wheels=$(python3 - <<'P' 2>/dev/null
import glob, os, sysconfig
print(":".join(sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib")))))
P
)
export LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export TPSIM_LIBRARY_PATH="${TPSIM_LIBRARY_PATH:+$TPSIM_LIBRARY_PATH:}$wheels"
export TPSIM_DATA="$bundle/data" TPSIM_GOLDEN="$bundle/golden" PYTHONUNBUFFERED=1
failed=0

# step NAME LIMIT COMMAND...: its output goes to OUT/NAME.txt, the end of it here.
step() {
  local name=$1 limit=$2
  shift 2
  local begin=$SECONDS code=0
  timeout "$limit" "$@" >"$out/$name.txt" 2>&1 || code=$?
  echo "== $name: exit code $code after $((SECONDS - begin)) s"
  tail -n 25 "$out/$name.txt"
  [ "$code" -eq 0 ] || failed=1
}

look() {
  step machine 60 bash -c 'cat /etc/os-release; ldd --version | head -1; nvidia-smi; nvcc --version'
  step version 60 "$bundle/tpsim" --version
  step first_step 120 "$bundle/tpsim" run --model bloom-560m --device cuda --seq 512 --steps 2
}

tests() {
  step tests 420 "$bundle/tpsim_cuda_tests"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step "$tool" 80 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$bundle/tpsim_cuda_tests" "the same op on the same values gives the same bits on CUDA"
    done
  fi
}

profile() {
  step profile 560 "$bundle/tpsim" profile --device cuda --model bloom-1b7 -o "$out/profile.json"
}

validate() {
  local model
  for model in bloom-560m bloom-1b7; do
    step "run_$model" 200 "$bundle/tpsim" run --model "$model" --device cuda --micro-batch 4 \
      --steps 8 --json
  done
  step rank_176b 180 "$bundle/tpsim" run --model bloom-176b --tp 4 --pp 12 --dp 1 --micro-batch 1 \
    --global-batch 16 --device cuda --rank 20 --steps 3 --json
}

speed() {
  step kernels 240 "$bundle/tpsim_bench_gpu"
  step bloom_1b7 100 "$bundle/tpsim" run --model bloom-1b7 --device cuda --micro-batch 4 \
    --attention flash --steps 8
  step torch 240 python3 "$bundle/gpu_against_torch.py" "$out/kernels.txt" "$out/bloom_1b7.txt"
}

case "$stage" in
  look | tests | profile | validate | speed) "$stage" ;;
  *) echo "gpu_check.sh: unknown stage $stage" >&2; exit 2 ;;
esac
exit "$failed"
