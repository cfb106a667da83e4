#!/usr/bin/env bash
# The real window on a virtual display: it opens, a script uses it, and its picture equals the CPU
# renderer's. Without Xvfb exits with 77, which ctest counts as skipped. Checks first, without a
# display, that the window takes the options of tpsim plan.
set -euo pipefail
tpsim=$1 folder=$2
mkdir -p "$folder"
is_png() { [[ $(head --bytes 4 "$1" | tail --bytes 3) == PNG ]]; }

# The window takes the options of tpsim plan and finds the same best plan.
options=(--model llama-2-7b --cluster dgx-a100 --gpus 16 --global-batch 64 --seq 1024 --tp 2,4
  --exclude zero=1 --max-memory 60GiB --max-oom 1% --stack megatron-core --norm-kernel torch)
step=$("$tpsim" plan "${options[@]}" --top 1 --json | sed '1,/"plans"/d' |
  grep --only-matching --max-count 1 '"step_s": [0-9.e-]*')
step=${step#*: }
cat >"$folder/options.txt" <<ACTIONS
wait
expect plan.step_s $(awk "BEGIN {printf \"%.4g\", $step}")
ACTIONS
"$tpsim" gui "${options[@]}" --script "$folder/options.txt" --screenshot "$folder/options.png"
is_png "$folder/options.png"
command -v Xvfb >/dev/null || { echo "skipped: no Xvfb here (apt-get install xvfb)"; exit 77; }
cat >"$folder/actions.txt" <<'ACTIONS'
wait
click "layout 2"
expect chosen yes
slide "tensor parallel" 0.98
expect plan.tp 16
screenshot window.png
ACTIONS
exec 3>"$folder/display"
Xvfb -displayfd 3 -screen 0 1400x900x24 -nolisten tcp 2>"$folder/xvfb.log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  [[ -s $folder/display ]] && break
  sleep 0.1
done
[[ -s $folder/display ]] || { cat "$folder/xvfb.log"; exit 1; }
export DISPLAY=:$(<"$folder/display")
export LIBGL_ALWAYS_SOFTWARE=1
status=0
(cd "$folder" && "$tpsim" gui --model bloom-7b1 --gpus 16 --global-batch 64 --script actions.txt) ||
  status=$?
if ((status == 4)); then echo "skipped: no OpenGL on this display"; exit 77; fi
((status == 0))
is_png "$folder/window.png"
