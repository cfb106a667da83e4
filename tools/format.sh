#!/usr/bin/env bash
# Formats all C++ and CUDA sources in place. With --check, only fails if a file is not formatted.
# Requires clang-format 14 (Debian 12), because the output differs between versions.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(--dry-run --Werror) ;;
  *) echo "tools/format.sh: unknown option $1 (known: --check)" >&2; exit 2 ;;
esac
formatter=$(command -v clang-format-14 || command -v clang-format) || {
  echo "tools/format.sh: clang-format is not installed; tools/install_packages.sh --dev installs it" >&2
  exit 4
}
git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' '*.cuh' '*.cu' |
  xargs -0 "$formatter" "${mode[@]}"
