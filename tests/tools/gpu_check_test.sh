#!/usr/bin/env bash
# tools/gpu_check.sh with fake GPU, profiles and measurements: the results of a stage with steps
# that succeed, fail, or hang.
#   gpu_check_test.sh SOURCE_DIR TPSIM
set -euo pipefail
source_dir=$1 tpsim=$2
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
bundle=$place/bundle
mkdir -p "$bundle" "$place/bin"
cp "$source_dir"/tools/{gpu_check.sh,gpu_ranks.sh,gpu_validation.py,merge_profiles.py,gpu_against_torch.py} "$bundle/"
ln -s "$source_dir/data" "$bundle/data"
ln -s "$source_dir/tests/golden" "$bundle/golden"

program() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$1" && chmod +x "$1"; }
# tpsim itself predicts the plans. One profile fails, and one run does not fit.
program "$bundle/tpsim" 'case "$*" in
  simulate*) exec "'"$tpsim"'" "$@" ;;
  profile*bloom-3b*) echo "tpsim: error: a kernel is wrong" >&2; exit 1 ;;
  profile*--collectives*) [ "$RANK" != 0 ] || echo "{}" >"${!#}"
    echo "GPU $LOCAL_RANK of $LOCAL_WORLD_SIZE" >&2 ;;
  profile*) cp "'"$source_dir"'/data/profiles/h200.json" "${!#}" ;;
  validate*bloom-7b1*) echo "tpsim: error: the GPU has no memory left" >&2; exit 3 ;;
  validate*) echo "{\"model\": \"played\", \"plan\": \"dp1\", \"step_spread\": 0.001,
    \"predicted_step_s\": 0.5, \"measured_step_s\": 0.4, \"op_kinds\": [],
    \"memory\": [{\"stage\": 0, \"predicted_gib\": 30, \"measured_gib\": 20}]}" ;;
  *--rank*) echo "{\"model\": \"played\", \"plan\": \"tp4\", \"rank\": 20, \"step_spread\": 0.001,
    \"predicted_step_s\": 2, \"step_s\": 2.5, \"peak_memory_gib\": 50,
    \"predicted_peak_memory_gib\": 40, \"op_kinds\": [
    {\"what\": \"matmul\", \"predicted_s\": 1, \"measured_s\": 1.25}]}" ;;
  run*--seq\ 16*) [ ! -e "'"$place"'/no_gpu" ] || exit 4 ;;
  *--tp\ 2*--steps\ 1000000*) trap "" TERM
    [ "$RANK" = 1 ] && exec sleep 60
    sleep 6; echo "tpsim: error: another rank has stopped or hangs" >&2; exit 4 ;;
  *--json*--pp\ 2) echo "{\"steps\": [{\"loss\": 2.5}]}" ;;
  *--json*) echo "{\"steps\": [{\"loss\": 1.5}]}" ;;
  *) echo "   1   12.345678   1.0000   850 ms   1000   10.00   1 GiB" ;;
esac'
program "$bundle/tpsim_cuda_tests" 'case "$*" in
  *"~[shapes]"*) exit 1 ;;
  *"[shapes]"*) echo "shapes are right" ;;
  --list-test-names-only) printf "CUDA ops on bf16, all of them\nops at the true size of models\nmarks on CUDA\n" ;;
  --list-ops) printf "matmul\nadd\n" ;;
  *"ops on bf16"*) exit 1 ;;
  *bf16*) echo "op $TPSIM_OP"; [ "$TPSIM_OP" = add ] ;;
  *) echo "All tests passed" ;;
esac'
program "$bundle/tpsim_bench_gpu" '[ "$1" != --attention ] || { printf "op\tby\nflash_forward\twarps\n"; exit 0; }
printf "op\tmicroseconds\nflash_forward 1x2048x28 variant 0\t100.0\n"'
program "$place/bin/nvidia-smi" 'case "$*" in
  *compute_cap*) echo 9.0 ;;
  -L) seq "${GPUS:-1}" ;;
  *) echo "a GPU that is played" ;;
esac'

export TPSIM_CHECK_WORK=$place/work
without_gpu=4
command -v nvidia-smi >/dev/null || {
  without_gpu=0
  touch "$place/no_gpu"
  "$bundle/gpu_check.sh" look "$place/none" >/dev/null 2>&1 || without_gpu=$?
  rm "$place/no_gpu"
}
export PATH=$place/bin:$PATH

expect() {  # WHAT, then a command that must succeed
  local what=$1
  shift
  if "$@" >/dev/null; then return 0; fi
  echo "gpu_check_test.sh: not so: $what" >&2
  exit 1
}
stage() { "$bundle/gpu_check.sh" "$1" "$place/$1" >"$place/$1.screen" 2>&1 && code=0 || code=$?; }

expect "without a GPU the exit code is 4" [ "$without_gpu" -eq 4 ]
expect "an unknown stage is refused" [ "$("$bundle/gpu_check.sh" nothing "$place/n" 2>&1 |
  grep -c "unknown stage")" -eq 1 ]

stage look
expect "a failed test is seen" [ "$code" -eq 1 ]
expect "after a failure of all in one process every test has its own" grep -q "All tests passed" "$place/look/look.txt"
expect "every kind of op is tried then" grep -q "== op_add: exit code 0" "$place/look/look.txt"
expect "and the wrong one is seen" grep -q "== op_matmul: exit code 1" "$place/look/look.txt"
expect "attention's times are left behind" grep -q flash_forward "$place/look/attention.tsv"
expect "ops of true size come after" grep -q "== shapes: exit code 0" "$place/look/look.txt"
expect "each step has a line" grep -q "^look/op_matmul: 1 after" "$place/look/summary.txt"

stage kernels
expect "kernels are left behind without PyTorch" grep -q flash_forward "$place/kernels/kernel_times.tsv"
expect "attention by warps is tried too" grep -q "== warps_backward: exit code 0" "$place/kernels/kernels.txt"

stage ranks
expect "ranks on one GPU are compared with one rank" grep -q "== nccl_tp2_losses: exit code 0" "$place/ranks/ranks.txt"
expect "other losses are seen" grep -q "^ranks/nccl_pp2_losses: 1 after .*mismatch" "$place/ranks/summary.txt"
expect "a stopped rank is given up" grep -q "^ranks/nccl_stopped: 0 after" "$place/ranks/summary.txt"

stage node
expect "one GPU is too few for a node" grep -q "1 GPU: the stage needs at least 2" "$place/node/summary.txt"
GPUS=5 stage node
expect "collectives of groups that fit are timed" [ -s "$place/node/collectives_4.json" ]
expect "and no others" [ ! -e "$place/node/collectives_8.json" ]
for one in tp2 tp_all pp2 zero1 zero3 stopped; do
  expect "node_$one succeeds" grep -q "^node/node_$one: 0 after" "$place/node/summary.txt"
done
expect "every rank has its own GPU" grep -q "GPU 3 of 4" "$place/node/node.txt"

stage profile
expect "a failed profile is seen" [ "$code" -eq 1 ]
expect "its reason is in the log" grep -q "a kernel is wrong" "$place/profile/profile.txt"
expect "the others make a profile" "$tpsim" simulate --model bloom-560m --cluster dgx-h200-node --stack reference \
  --profile "$place/profile/h200.json"

expect "a run that does not fit is seen" grep -q "^profile/validate_bloom-7b1: 3 after" "$place/profile/summary.txt"
expect "the others stand in the table" [ "$(grep -c '^| played' "$place/profile/validate.md")" -eq 10 ]
expect "with their errors" grep -q "+25.0 %" "$place/profile/validate.md"
expect "and the ops that are off" grep -q "matmul -250.00 ms" "$place/profile/validate.md"

stage speed
expect "clocks are left behind" [ -e "$place/speed/clocks.csv" ]
for one in look kernels ranks node profile speed; do
  expect "few files for $one" [ "$(find "$place/$one" -type f | wc -l)" -le 5 ]
done
