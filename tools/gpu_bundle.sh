#!/usr/bin/env bash
# Builds the programs that tools/gpu_check.sh runs, and copies them into one self-contained folder
# with data, golden files, and libraries that a bare machine does not have.
#   tools/gpu_bundle.sh [--arch LIST] [FOLDER, build/gpu/bundle when not given]
# LIST: GPU architectures in CMake's notation ("90", "90a", "80;90"). A bundle for one architecture
# has a third of the size.
set -euo pipefail
cd "$(dirname "$0")/.."
architectures=""
if [ "${1:-}" = --arch ]; then
  architectures=${2:?--arch needs a list of architectures, such as 90}
  shift 2
fi
bundle=${1:-build/gpu/bundle}
programs=(tpsim tpsim_cuda_tests tpsim_bench_gpu)

cmake --preset gpu -DCMAKE_CUDA_ARCHITECTURES="$architectures"
cmake --build --preset gpu --target "${programs[@]}"
rm -rf "$bundle"
mkdir -p "$bundle/lib"
for program in "${programs[@]}"; do
  strip -o "$bundle/$program" "build/gpu/$program"
  # Copies all libraries except the C library, which every machine has.
  ldd "build/gpu/$program" | awk '/=> \// { print $3 }' |
    { grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' || true; } |
    while read -r library; do cp -n "$library" "$bundle/lib/"; done
done
cp -r data "$bundle/data"
cp -r tests/golden "$bundle/golden"
cp tools/gpu_check.sh tools/gpu_ranks.sh tools/gpu_against_torch.py tools/gpu_validation.py tools/merge_profiles.py "$bundle/"
du -sh "$bundle"
