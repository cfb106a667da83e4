#!/usr/bin/env bash
# Fuzzes every reader of external files for MINUTES in total on one core. Prints executions, covered
# edges and failures by target. Inputs that reach new code are added to build/fuzz/corpus. Failing
# inputs are written to build/fuzz/failures: minimize them (-minimize_crash=1), and add them to
# tests/fuzz/corpus/TARGET together with the fix.
#
# Usage: tools/fuzz.sh MINUTES [TARGET...]
# An input that takes longer than 10 s or allocates more than 1 GiB is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: tools/fuzz.sh MINUTES [TARGET...]}
shift

cmake --preset fuzz >/dev/null
build=build/fuzz
mapfile -t all < <(sed -n 's/^      {"\([a-z_]*\)", .*/\1/p' tests/fuzz/fuzz_target.cc | sort)
(($# > 0)) && all=("$@")
cmake --build --preset fuzz --target "${all[@]/#/tpsim_fuzz_}"
seconds=$((minutes * 60 / ${#all[@]}))
mkdir -p "$build/failures" "$build/corpus"

# Prints the folders and files that a target uses as additional seeds, from its row in
# fuzz_target.cc.
seeds_of() {
  sed -n "s/^      {\"$1\", [a-z_]*, {\(.*\)}},/\1/p" tests/fuzz/fuzz_target.cc | tr -d '",'
}

total=0 failed=0
for target in "${all[@]}"; do
  mkdir -p "$build/corpus/$target" "$build/seeds/$target"
  for seed in $(seeds_of "$target"); do cp -r "$seed"/. "$build/seeds/$target" 2>/dev/null || cp "$seed" "$build/seeds/$target"; done
  given=("$build/corpus/$target" "$build/seeds/$target")
  [[ -d tests/fuzz/corpus/$target ]] && given+=("tests/fuzz/corpus/$target")
  log=$build/$target.log
  if ! "$build/tpsim_fuzz_$target" "${given[@]}" -max_total_time="$seconds" -timeout=10 \
    -malloc_limit_mb=1024 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
    -artifact_prefix="$build/failures/$target-" >"$log" 2>&1; then
    failed=$((failed + 1))
    grep -m 3 -E 'ERROR|runtime error|broken law|what\(\)' "$log" || tail -n 3 "$log"
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  printf '%-16s %10d executions  %6d edges\n' "$target" "${runs:-0}" "${edges:-0}"
  total=$((total + ${runs:-0}))
done
printf '%d executions of %d targets, %d failed\n' "$total" "${#all[@]}" "$failed"
((failed == 0))
