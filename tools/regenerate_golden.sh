#!/usr/bin/env bash
# Writes the current output of the commands in tests/cli/golden to the golden files. Review the diff
# afterwards.
#
# Usage: tools/regenerate_golden.sh [preset, default release]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
cmake --preset "$preset"
cmake --build --preset "$preset" --target tpsim_cli_golden_tests
TPSIM_REGENERATE_GOLDEN=1 "build/$preset/tpsim_cli_golden_tests"
git --no-pager diff --stat -- tests/cli/golden
