#!/usr/bin/env bash
# A program of the preset static depends on nothing of the machine: no library, no loader, no lookup
# of hosts or users, no data files. tools/release.sh runs this test for both architectures.
#
# Usage: static_program_test.sh PROGRAM [EMULATOR]     EMULATOR runs programs of another architecture
set -euo pipefail

program=$(realpath "$1")
tiny=$(realpath "$(dirname "$0")/../cli/files/data/models/tiny.json")
run=("$program")
if [[ -n ${2:-} ]]; then run=("$2" "$program"); fi
fail() { echo "static_program_test.sh: $*" >&2; exit 1; }

readelf --program-headers "$program" | grep -q INTERP && fail "asks for a loader"
readelf --dynamic "$program" | grep -q NEEDED && fail "asks for libraries"
# dlopen() is part of glibc's start-up. The linker checks that the program does not call it:
# warnings are errors (cmake/Options.cmake).
if nm "$program" | grep -E ' (getaddrinfo|gethostbyname|getpwnam|getpwuid|getgrnam)$'; then
  fail "looks up hosts or users"
fi
bytes=$(stat --format %s "$program")
((bytes < 20000000)) || fail "has $bytes bytes"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$program" "$folder/tpsim" # away from its build folder
run[-1]=$folder/tpsim
cd "$folder"
env -i "${run[@]}" --version | grep -q 'data: *part of the program' || fail "reads data of its machine"
env -i "${run[@]}" plan --model bloom-176b --gpus 384 --top 1 --save plan.json >text
grep -q 'bloom-176b, 176.2 B parameters, on 384 GPUs' text || fail "plans something else"
for command in simulate explain campaign; do
  options=()
  if [[ $command == campaign ]]; then options=(--tokens 300B); fi
  env -i "${run[@]}" "$command" plan.json "${options[@]}" --json >/dev/null || fail "$command ends with $?"
done
env -i "${run[@]}" export plan.json --to megatron-deepspeed -o launch --allow-loss >/dev/null || fail "export ends with $?"
env -i "${run[@]}" report plan.json --html page.html >/dev/null ||
  fail "report ends with $?: configure with -DTPSIM_PAGE=.../tpsim-page.html"
env -i "${run[@]}" validate --runs bloom_jean_zay >/dev/null || fail "validate ends with $?"
env -i "${run[@]}" run --model "$tiny" --dp 2 --global-batch 2 --seq 16 --steps 1 >/dev/null ||
  fail "run ends with $?"
echo "static: $bytes bytes, needs nothing"
