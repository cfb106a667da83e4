#!/usr/bin/env bash
# Creates the pictures of docs/ without a display, or compares them with what the program draws.
#
# Usage: tools/screenshots.sh [--check] [build folder: build/release]
# --check writes nothing and exits with 1 if a picture is out of date. It leaves out gui-page.png,
# which a browser draws.
set -euo pipefail
cd "$(dirname "$0")/.."
checks=no
if [[ ${1:-} == --check ]]; then
  checks=yes
  shift
fi
tpsim=${1:-build/release}/tpsim
if (($# > 1)) || [[ ! -x $tpsim ]]; then
  echo "tools/screenshots.sh: $* is not a build folder with the program tpsim: run make build" >&2
  exit 2
fi
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/script" <<'ACTIONS'
wait
screenshot gui-light.png
click "layout 2"
click "Pin as B"
click "layout 3"
wait
move "sort by step" 0.5 0.5
screenshot gui-compare.png
click "Pin as B"
wait
theme dark
wheel timeline 12 0.2 0.5
click "Critical path"
wheel timeline 11 0.02 0.5
move timeline 0.4 0.1
ACTIONS
"$tpsim" gui --model bloom-176b --gpus 384 --script "$folder/script" \
  --screenshot "$folder/gui-dark.png"
"$tpsim" plan --model bloom-176b --gpus 384 --plot "$folder/plan.svg" >/dev/null
cat >"$folder/script" <<'ACTIONS'
wait
press K
wait
wheel timeline 22 0.21 0.7
wait
move "lanes of the stage" 0.4 0.1
ACTIONS
"$tpsim" gui --model deepseek-v3 --cluster dgx-h100 --gpus 256 --tp 1 --pp 16 --script "$folder/script" \
  --screenshot "$folder/gui-kernels.png"
pictures=(gui-light.png gui-compare.png gui-dark.png gui-kernels.png plan.svg)
if [[ $checks == yes ]]; then
  exec python3 tools/compare_pictures.py "$folder" docs "${pictures[@]}"
fi
for picture in "${pictures[@]}"; do
  cp "$folder/$picture" docs/
done

# Creates the picture of the web page, if the page is built and a browser is installed.
"$tpsim" plan --model bloom-176b --gpus 384 --save "$folder/plan.json" >/dev/null
if "$tpsim" report "$folder/plan.json" --html "$folder/report.html"; then
  python3 tests/page/page_picture.py "$folder/report.html" docs/gui-page.png
fi
