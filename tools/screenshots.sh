#!/usr/bin/env bash
# Creates the pictures of docs/ without a display.
#
# Usage: tools/screenshots.sh [build folder: build/release]
set -euo pipefail
cd "$(dirname "$0")/.."
tpsim=${1:-build/release}/tpsim
script=$(mktemp)
trap 'rm -f "$script"' EXIT

cat >"$script" <<'ACTIONS'
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
screenshot gui-dark.png
ACTIONS
"$tpsim" gui --model bloom-176b --gpus 384 --script "$script" --screenshot docs/last.png
rm docs/last.png
"$tpsim" plan --model bloom-176b --gpus 384 --plot docs/plan.svg >/dev/null

# Creates the picture of the web page, if the page is built and a browser is installed.
page=$(mktemp --directory)
trap 'rm -rf "$script" "$page"' EXIT
"$tpsim" plan --model bloom-176b --gpus 384 --save "$page/plan.json" >/dev/null
if "$tpsim" report "$page/plan.json" --html "$page/report.html"; then
  python3 tests/page/page_picture.py "$page/report.html" docs/gui-page.png
fi
