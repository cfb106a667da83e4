#!/usr/bin/env bash
# Checks and measurements on a bare machine with a GPU, NVIDIA's driver and Python's CUDA packages.
# Runs in a bundle of tools/gpu_bundle.sh. Builds nothing and needs no network.
#   BUNDLE/gpu_check.sh STAGE OUT
# STAGE, each under ten minutes, the three most informative first (docs/cuda.md has the times):
#   look      the machine; times of attention and its reproducibility under contention; 8-bit GEMMs;
#             overlap of a GEMM with another stream; all tests in one process; large models; graphs
#   kernels   each kernel compared with the copy rate and with PyTorch; attention with warp kernels
#   ranks     real NCCL between processes on the one GPU
#   profile   profiles and validates two plans, then others while there is time: OUT/h200.json
#   speed     steps compared with PyTorch; clocks and power during a minute of GEMMs
#   node      2, 4 or 8 GPUs: collectives, LLaMA-3-8B in five layouts, a stopped rank
#   sanitize  the four tools of compute-sanitizer
# TPSIM_CHECK_SECONDS: time limit of a stage in seconds, default 570.
# Each stage writes at most five files to OUT: the log of all steps, summary.txt with a line per
# step, and results. Exit code 1: a step failed. 4: there is no GPU.
set -uo pipefail
bundle=$(cd "$(dirname "$0")" && pwd)
stage=${1:?give a stage: look, kernels, ranks, node, profile, speed or sanitize}
out=${2:?give a folder for the results}
work=${TPSIM_CHECK_WORK:-/tmp/tpsim_check}  # kept between stages on one machine
mkdir -p "$out" "$work"
log=$out/$stage.txt
summary=$out/summary.txt
: >"$log"
deadline=$((SECONDS + ${TPSIM_CHECK_SECONDS:-570}))
failed=0

# If there is no CUDA toolkit, NVIDIA's Python wheels provide cuBLASLt, NCCL and CUPTI.
wheels=$(python3 -c 'import glob, os, sysconfig
print(":".join(sorted(glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "lib")))))' \
  2>/dev/null || true)
export LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export TPSIM_LIBRARY_PATH="${TPSIM_LIBRARY_PATH:+$TPSIM_LIBRARY_PATH:}$wheels"
export TPSIM_DATA="$bundle/data" TPSIM_GOLDEN="$bundle/golden" PYTHONUNBUFFERED=1

# step NAME LIMIT COMMAND...: runs a command for at most LIMIT seconds. Writes all output to the log
# and prints the end of it. Standard output is kept in $work/NAME.out. If the time of the stage is
# over, the command is not run.
step() {
  local name=$1 limit=$2 begin=$SECONDS code=0
  shift 2
  [ $((deadline - SECONDS)) -ge "$limit" ] || limit=$((deadline - SECONDS))
  if [ "$limit" -lt 10 ]; then
    echo "== $name: not run, because the time limit of the stage is reached" | tee -a "$log" "$summary"
    failed=1
    return 1
  fi
  timeout -k 10 "$limit" "$@" >"$work/$name.out" 2>"$work/$name.err" || code=$?
  echo "== $name: exit code $code after $((SECONDS - begin)) s" | tee -a "$log"
  { echo "\$ $*"; cat "$work/$name.out" "$work/$name.err"; } >>"$log"
  tail -qn 12 "$work/$name.out" "$work/$name.err" | cut -c1-240
  local why=""
  if [ "$code" -ne 0 ]; then
    failed=1
    why=$(grep -hm1 -iE 'error|fail|not so|mismatch' "$work/$name.err" "$work/$name.out" | cut -c1-160)
  fi
  echo "$stage/$name: $code after $((SECONDS - begin)) s${why:+: $why}" >>"$summary"
  return "$code"
}

# Plans that run on one GPU, most important first: name, then options.
plans=(
  "bloom-1b7-unfused --model bloom-1b7 --micro-batch 4 --global-batch 8 --attention unfused"
  "bloom-1b7-flash --model bloom-1b7 --micro-batch 4 --global-batch 8 --attention flash"
  "bloom-560m --model bloom-560m --micro-batch 8 --global-batch 16 --attention unfused"
  "bloom-7b1 --model bloom-7b1 --micro-batch 1 --global-batch 4 --attention flash --recompute full"
  "llama-2-7b --model llama-2-7b --micro-batch 1 --global-batch 4 --attention flash --recompute full"
  "bloom-3b --model bloom-3b --micro-batch 2 --global-batch 4 --attention unfused"
  "bloom-1b1 --model bloom-1b1 --micro-batch 4 --global-batch 8 --attention flash"
)
# Plans of which single ranks run alone on the GPU: name, ranks (separated by commas), then options.
lone_ranks=(
  "bloom-176b 20,0,44 --cluster dgx-h200 --model bloom-176b --tp 4 --pp 12 --dp 1 --micro-batch 1 --global-batch 16 --attention unfused"
  "llama-2-70b 0,24 --cluster dgx-h200 --model llama-2-70b --tp 8 --pp 4 --dp 1 --micro-batch 1 --global-batch 8 --attention flash"
)

# plan_file NAME OPTIONS...: writes the plan file $work/NAME.plan.json, predicted with the profile
# $work/h200.json if it exists.
plan_file() {
  local name=$1
  shift
  local prices=()
  case " $* " in
    *" --cluster "*) ;;
    *) grep -qs '"devices": [1-9]' "$work/h200.json" || prices=(--cluster dgx-h200-node) ;;
  esac
  [ ! -s "$work/h200.json" ] || prices+=(--profile "$work/h200.json")
  case " $* " in *" --recompute "*) ;; *) set -- "$@" --recompute none ;; esac
  "$bundle/tpsim" simulate --stack reference --dtype bf16 --sequence-parallel off --allow-oom "$@" \
    "${prices[@]}" --save "$work/$name.plan.json" >"$work/$name.simulated" 2>&1 && return 0
  echo "== plan $name: $(tail -n 1 "$work/$name.simulated")" | tee -a "$log"
  failed=1
  return 1
}

# same_losses NAME TOLERANCE A B: fails if the losses of two reports in $work differ.
same_losses() {
  step "$1" 20 python3 -c 'import json, sys
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[2:4])
print(a, b)
ok = len(a) == len(b) > 0 and all(abs(x - y) <= float(sys.argv[1]) * abs(x) for x, y in zip(a, b))
sys.exit(0 if ok else "losses mismatch")' "$2" "$work/$3.out" "$work/$4.out"
}
# Logs clocks and power, with the reasons for reduced clocks.
clocks() { nvidia-smi -q -d CLOCK,POWER,ECC,PERFORMANCE >>"$log" 2>&1 || true; }

look() {
  step machine 60 bash -c 'cat /etc/os-release; ldd --version | head -1; nvidia-smi; nvcc --version
    free -g; nproc; python3 -c "import torch; print(torch.__version__, torch.cuda.is_available())"
    for tool in compute-sanitizer ncu; do command -v $tool; done; true'
  step version 60 "$bundle/tpsim" --version
  step libraries 60 bash -c "ldd '$bundle/tpsim'; ls -d ${TPSIM_LIBRARY_PATH//:/ } 2>/dev/null; true"
  step first_steps 60 "$bundle/tpsim" run --model bloom-560m --device cuda --seq 512 --steps 3
  step attention 60 "$bundle/tpsim_bench_gpu" --attention
  cp "$work/attention.out" "$out/attention.tsv" 2>/dev/null
  step contention 90 "$bundle/tpsim_cuda_tests" --durations yes "[contention]"
  step narrow 60 env CUBLASLT_LOG_LEVEL=1 "$bundle/tpsim_cuda_tests" "[narrow]"
  step beside 40 "$bundle/tpsim_bench_gpu" --beside
  tests
  step shapes 200 "$bundle/tpsim_cuda_tests" --durations yes "[shapes]~[contention]"
  step graphs 60 "$bundle/tpsim" run --model bloom-560m --device cuda --seq 512 --steps 4 \
    --micro-batch 1 --global-batch 4 --cuda-graphs
}

# Runs all tests in one process, which creates the CUDA context and loads cuBLASLt only once. A
# kernel fault ends this process. After a failure every test, and then every kind of op, runs in a
# separate process.
tests() {
  local name op broken=0 count=0
  step all_tests 200 "$bundle/tpsim_cuda_tests" --durations yes "~[shapes]" && return
  while IFS= read -r name; do
    [ -n "$name" ] || continue
    case "$name" in *true\ size*) continue ;; esac
    step "test_$((++count))" 100 "$bundle/tpsim_cuda_tests" --durations yes "${name//,/\\,}" ||
      case "$name" in *ops\ on*) broken=1 ;; esac
  done < <("$bundle/tpsim_cuda_tests" --list-test-names-only)
  [ "$broken" -eq 1 ] || return 0
  for op in $("$bundle/tpsim_cuda_tests" --list-ops); do
    TPSIM_OP=$op step "op_$op" 40 "$bundle/tpsim_cuda_tests" "*bf16*"
  done
}

kernels() {
  step kernels 200 "$bundle/tpsim_bench_gpu"
  cp "$work/kernels.out" "$out/kernel_times.tsv" 2>/dev/null
  step torch_kernels 120 python3 "$bundle/gpu_against_torch.py" "$work/kernels.out"
  step torch_attention 120 python3 "$bundle/gpu_against_torch.py" --attention "$work/attention.out"
  by_warps
}

# Repeats the attention tests with warp kernels, because Hopper uses warpgroup kernels by default.
by_warps() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
  if [ "$capability" != 9.0 ]; then
    echo "== attention by warps is already tested above on compute capability ${capability:-unknown}" | tee -a "$log"
    return
  fi
  export TPSIM_HOPPER_ATTENTION=0
  TPSIM_OP=flash_forward step warps_forward 60 "$bundle/tpsim_cuda_tests" "CUDA ops on*"
  TPSIM_OP=flash_backward step warps_backward 60 "$bundle/tpsim_cuda_tests" "CUDA ops on*"
  step warps_shapes 90 "$bundle/tpsim_cuda_tests" "attention at the true size*,the same op*,[contention]"
  unset TPSIM_HOPPER_ATTENTION
}

# Tests the real NCCL with all processes of a job on the one GPU. NCCL counts each process as a
# separate host.
ranks() {
  local golden=$bundle/golden/bloom-tiny
  local job=(--checkpoint "$golden" --tokens "$golden/tokens.safetensors" --dtype fp32 --device cuda
    --global-batch 8 --micro-batch 2 --json)
  step nccl_one 40 "$bundle/tpsim" run "${job[@]}" --steps 3
  local name ranks options
  while read -r name ranks options; do
    # shellcheck disable=SC2086
    step "nccl_$name" 60 "$bundle/gpu_ranks.sh" "$ranks" "$bundle/tpsim" run "${job[@]}" --steps 3 $options &&
      same_losses "nccl_${name}_losses" 1e-4 nccl_one "nccl_$name"
  done <<'PLANS'
tp2 2 --tp 2
tp2_after 2 --tp 2 --tp-overlap none
pp2 2 --pp 2
zb_h1 2 --pp 2 --schedule zb-h1
beside 2 --dp 2 --zero 1 --overlap-gradient-reduction on
after 2 --dp 2 --zero 1 --overlap-gradient-reduction off
zero3 2 --dp 2 --zero 3
tp2pp2 4 --tp 2 --pp 2
PLANS
  step nccl_stopped 60 env TPSIM_TIMEOUT=10 "$bundle/gpu_ranks.sh" --stop 2 "$bundle/tpsim" run \
    "${job[@]}" --tp 2 --steps 1000000
}

# Measures 2, 4 and 8 GPUs of one node, one rank on each. Stops with a message if there is one GPU.
node() {
  local gpus ranks name options most=0
  gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
  for ranks in 2 4 8; do
    [ "$ranks" -le "$gpus" ] || break
    most=$ranks
    step "collectives_$ranks" 90 "$bundle/gpu_ranks.sh" --node "$ranks" "$bundle/tpsim" profile \
      --model llama-3-8b --tp "$ranks" --pp 1 --dp 1 --collectives --quick --device cuda \
      -o "$work/collectives_$ranks.json" && cp "$work/collectives_$ranks.json" "$out/"
  done
  [ "$most" -gt 0 ] || { echo "== $gpus GPU: the stage needs at least 2" | tee -a "$log" "$summary"; return; }
  while read -r name ranks options; do
    [ "$ranks" -gt 0 ] || ranks=$most
    # shellcheck disable=SC2086
    plan_file "node_$name" --cluster dgx-h200-node --model llama-3-8b --micro-batch 1 --global-batch 8 \
      --attention flash --recompute full ${options//MOST/$ranks} || continue
    step "node_$name" 60 "$bundle/gpu_ranks.sh" --node "$ranks" "$bundle/tpsim" validate \
      "$work/node_$name.plan.json" --device cuda --steps 6 --json
  done <<'PLANS'
tp2 2 --tp 2 --pp 1 --dp 1
tp_all 0 --tp MOST --pp 1 --dp 1
pp2 2 --tp 1 --pp 2 --dp 1
zero1 0 --tp 1 --pp 1 --dp MOST --zero 1
zero3 0 --tp 1 --pp 1 --dp MOST --zero 3
PLANS
  step node_stopped 60 env TPSIM_TIMEOUT=10 "$bundle/gpu_ranks.sh" --node --stop 2 "$bundle/tpsim" run \
    --model bloom-560m --device cuda --seq 512 --tp 2 --steps 1000000
}

profile() {
  local one name spec rank rank_list
  local parts=()
  rm -f "$work"/*.part.json "$work/h200.json"
  : >"$out/validate.jsonl"
  keep() { python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))))' \
    "$work/$1.out" >>"$out/validate.jsonl" 2>>"$log"; }
  # priced NAME OPTIONS...: profiles a plan and merges the result into h200.json, so that the
  # results so far are usable if the stage ends early.
  priced() {
    plan_file "$@" || return 1
    step "profile_$1" 240 "$bundle/tpsim" profile "$work/$1.plan.json" --device cuda \
      -o "$work/$1.part.json" || return 1
    parts+=("$work/$1.part.json")
    python3 "$bundle/merge_profiles.py" -o "$work/merged.json" "${parts[@]}" 2>>"$log" &&
      cp "$work/merged.json" "$out/h200.json" && cp "$work/merged.json" "$work/h200.json"
  }
  ranks_of() {
    read -r name rank_list spec <<<"$1"
    # shellcheck disable=SC2086
    priced "$name" $spec || return
    # shellcheck disable=SC2086
    plan_file "$name" $spec || return
    for rank in ${rank_list//,/ }; do
      step "rank_${name}_$rank" 75 "$bundle/tpsim" run "$work/$name.plan.json" --device cuda \
        --rank "$rank" --steps 6 --profile "$work/h200.json" --json && keep "rank_${name}_$rank"
    done
  }
  whole() {
    name=${1%% *}
    # shellcheck disable=SC2086
    priced $1 || return
    # shellcheck disable=SC2086
    plan_file $1 || return
    step "validate_$name" 75 "$bundle/tpsim" validate "$work/$name.plan.json" --device cuda \
      --steps 12 --profile "$work/h200.json" --json && keep "validate_$name"
  }
  ranks_of "${lone_ranks[0]}"
  for one in "${plans[@]}"; do whole "$one"; done
  for one in "${lone_ranks[@]:1}"; do ranks_of "$one"; done
  [ -s "$out/h200.json" ] || failed=1
  python3 "$bundle/gpu_validation.py" "$out/validate.jsonl" >"$out/validate.md" 2>>"$log" || failed=1
  cat "$out/validate.md"
}

speed() {
  step bloom_1b7 90 "$bundle/tpsim" run --model bloom-1b7 --device cuda --micro-batch 4 \
    --attention flash --steps 10
  step bloom_1b7_graphs 90 "$bundle/tpsim" run --model bloom-1b7 --device cuda --micro-batch 4 \
    --attention flash --steps 10 --cuda-graphs
  step bloom_7b1 120 "$bundle/tpsim" run --model bloom-7b1 --device cuda --micro-batch 1 \
    --attention flash --steps 8
  step torch 200 python3 "$bundle/gpu_against_torch.py" "$work/kernels.out" "$work/bloom_1b7.out" \
    "$work/bloom_7b1.out"
  cp "$work/torch.out" "$out/torch.txt" 2>/dev/null
  # Logs clocks and power every 100 ms while the clock falls from burst to sustained.
  nvidia-smi --query-gpu=timestamp,clocks.sm,power.draw,temperature.gpu --format=csv -lms 100 \
    >"$out/clocks.csv" 2>>"$log" &
  local curve=$!
  step soak 90 "$bundle/tpsim_bench_gpu" --soak 60
  kill "$curve" 2>/dev/null
  wait "$curve" 2>/dev/null
}

# racecheck checks shared memory only, so the tests with the most shared memory (flash attention,
# norms) run first at real sizes.
sanitize() {
  command -v compute-sanitizer >/dev/null || { echo "== compute-sanitizer is not installed: its checks do not run" | tee -a "$log"; return; }
  for tool in memcheck racecheck synccheck initcheck; do
    step "$tool" 150 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$bundle/tpsim_cuda_tests" "[sanitize]"
  done
}

case "$stage" in
  look | kernels | ranks | node | profile | speed | sanitize) ;;
  *) echo "gpu_check.sh: unknown stage $stage" >&2; exit 2 ;;
esac
# If nvidia-smi is missing, tpsim decides whether there is a GPU.
if ! nvidia-smi >/dev/null 2>&1; then
  code=0
  "$bundle/tpsim" run --model bloom-560m --device cuda --seq 16 --steps 1 >>"$log" 2>&1 || code=$?
  if [ "$code" -eq 4 ]; then
    echo "gpu_check.sh: neither nvidia-smi nor tpsim finds a GPU" | tee -a "$log" >&2
    exit 4
  fi
fi
clocks
"$stage"
clocks
echo "== summary" && grep "^$stage/" "$summary" | tail -n 60
exit "$failed"
