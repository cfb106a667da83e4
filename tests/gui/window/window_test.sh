#!/usr/bin/env bash
# The real window on a virtual display: it opens, a script uses it, and its picture equals the CPU
# renderer's. Without Xvfb exits with 77, which ctest counts as skipped. Checks first, without a
# display, that tpsim plan passes its picture to the program with the window.
set -euo pipefail
tpsim=$1 folder=$2
mkdir -p "$folder"
is_png() { [[ $(head --bytes 4 "$1" | tail --bytes 3) == PNG ]]; }
rm -f "$folder/plans.png"
"$tpsim" plan --model bloom-7b1 --cluster jean-zay-a100 --gpus 16 --global-batch 64 --plot "$folder/plans.png" >/dev/null
is_png "$folder/plans.png"
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
