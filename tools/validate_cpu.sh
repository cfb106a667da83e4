#!/usr/bin/env bash
# Compares predictions with measured steps on this machine's CPU: 2 ranks on 2 cores, two models.
# Writes a Markdown table to standard output, with 24 rows for both models.
#
# Usage: tools/validate_cpu.sh [TPSIM [STEPS [small|large [kinds|beside]]]]
# Use a quiet machine, because other programs disturb the runs.
#   kinds   every kind of parallelism, with and without recompute
#   beside  gradient reductions overlapped with backward: every ZeRO stage, micro-batches of 1, 2, 4
set -euo pipefail
tpsim=${1:-build/release/tpsim}
steps=${2:-20}
sizes=${3:-small large}
rows=${4:-kinds}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Arguments of model: name, hidden, layers, heads, sequence length, vocab size.
model() {
  cat > "$work/$1.json" <<JSON
{"format": "tpsim-model/1", "name": "bloom-h$2-l$3-s$5", "source": "the architecture of BLOOM, small",
 "layers": $3, "hidden": $2, "ffn_hidden": $((4 * $2)), "vocab": $6, "seq": $5,
 "attention": {"heads": $4, "kv_heads": $4, "head_dim": $(($2 / $4)), "position": "alibi"},
 "norm": "layer_norm", "mlp": "gelu", "linear_bias": true, "fused_qkv": true,
 "tied_embedding": true, "embedding_norm": true, "residual_from_after_norm": false,
 "norm_epsilon": 1e-05, "initializer_range": 0.02}
JSON
}
model small 256 4 8 256 2048
model large 512 8 8 128 4096

common=(--global-batch 8 --attention unfused --dtype fp32 --sequence-parallel off)

# Predicts and runs the plans $2... of model $1. All predictions use the same profile.
validate() {
  local name=$1
  shift
  for plan in "$@"; do
    # shellcheck disable=SC2086
    "$tpsim" simulate --model "$work/$name.json" "${common[@]}" $plan \
      --profile "$work/profile.json" --save "$work/plan.json" > "$work/simulated.txt"
    "$tpsim" validate "$work/plan.json" --steps "$steps" --json > "$work/report.json"
    python3 - "$work/report.json" "${plan//--/}" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
memory = max(report["memory"], key=lambda stage: stage["measured_gib"])
worst = max(report["memory"], key=lambda stage: abs(stage["error_pct"]))
plan = sys.argv[2].replace(" overlap-gradient-reduction on", "").replace(" micro-batch 2 recompute", ", recompute")
least = 100 * (report["predicted_step_s"] / report["least_step_s"] - 1)
print("| %s | %s | %.1f ms | %.1f ms | %.1f %% | %+.1f %% | %+.1f %% | %.1f MiB | %.1f MiB | %+.2f %% |" % (
    report["model"], plan, 1e3 * report["predicted_step_s"],
    1e3 * report["measured_step_s"], 100 * report["step_spread"], report["error_pct"], least,
    1024 * memory["predicted_gib"], 1024 * memory["measured_gib"], worst["error_pct"]), flush=True)
PYTHON
  done
}

profile() {
  "$tpsim" profile --model "$work/$1.json" --gpus 2 "${common[@]}" "${@:2}" -o "$work/profile.json" >&2
}

echo "| model | plan | predicted | measured | spread | error | error against the fastest step | memory predicted | measured | error |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for name in $sizes; do
  if [[ $rows == beside ]]; then
    for micro in 1 2 4; do
      profile "$name" --micro-batch $micro --dp 2 --recompute none
      plans=()
      for zero in 0 1 2 3; do
        plans+=("--dp 2 --zero $zero --micro-batch $micro --recompute none --overlap-gradient-reduction on")
      done
      validate "$name" "${plans[@]}"
    done
    continue
  fi
  for recompute in none full; do
    # With recompute more operands of ops are in the caches, so that a separate profile is measured.
    profile "$name" --micro-batch 2 --recompute $recompute
    plans=()
    for layout in "--tp 2" "--pp 2" "--dp 2 --zero 0" "--dp 2 --zero 1" "--dp 2 --zero 2" "--dp 2 --zero 3"; do
      plans+=("$layout --micro-batch 2 --recompute $recompute")
    done
    validate "$name" "${plans[@]}"
  done
done
