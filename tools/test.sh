#!/usr/bin/env bash
# Installs missing packages, builds everything, and runs every test except those of
# tools/nightly.sh.
#
# Usage: tools/test.sh [ctest options, e.g. -L unit]
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh --full
cmake --preset release
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" --label-exclude nightly "$@"
