#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy) on all sources, or on the given ones. With --changed, runs on at
# most 40 sources that differ from the commit before the last one (tools/nightly.sh checks all
# sources).
#
# Usage: tools/tidy.sh [--changed | source...]
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v run-clang-tidy >/dev/null; then
  echo "tools/tidy.sh: clang-tidy is not installed; tools/install_packages.sh --dev installs it" >&2
  exit 4
fi
readonly folders='core|kernels|ranks|reference_model|profiler|costs|sim|plans|campaigns|formats|frameworks|evidence|app|gui|page|cli'
if [[ ${1:-} == --changed ]]; then
  shift
  if ! git rev-parse --quiet --verify HEAD~1 >/dev/null; then
    echo "tools/tidy.sh: HEAD is the first commit: there is nothing to compare with"
    exit 0
  fi
  mapfile -t changed < <(git diff --name-only --diff-filter=AM HEAD~1 |
    grep -E "^($folders)/.*\.cc$" | grep -Ev '^(kernels/cuda|ranks/nccl|page)/' | head -n 40)
  if ((${#changed[@]} == 0)); then
    echo "tools/tidy.sh: no source has changed"
    exit 0
  fi
  set -- "${changed[@]/#/$PWD/}"
fi
# Configures a separate build without unity builds.
cmake --preset dev -DTPSIM_CUDA=OFF -B build/tidy >/dev/null
if (($# == 0)); then set -- "^$PWD/($folders)/"; fi
# clang does not support all warning names of GCC.
run-clang-tidy -quiet -extra-arg=-Wno-unknown-warning-option -p build/tidy "$@"
