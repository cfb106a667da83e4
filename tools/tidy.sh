#!/usr/bin/env bash
# clang-tidy (.clang-tidy) over the sources of the project, or over those named.
#
# Usage: tools/tidy.sh [source...]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v run-clang-tidy >/dev/null; then
  echo "tools/tidy.sh: no clang-tidy; tools/install_packages.sh --dev installs it" >&2
  exit 4
fi
cmake --preset dev >/dev/null
if (($# == 0)); then set -- "^$PWD/(core|kernels|reference_model|profiler|sim|plans|gui|cli)/"; fi
run-clang-tidy -quiet -p build/dev "$@"
