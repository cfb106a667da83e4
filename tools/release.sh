#!/usr/bin/env bash
# Makes and tests a release: programs for x86-64 and aarch64 that run on any Linux. They are packed
# into tarballs, Debian packages, wheels with a package index, and a container image, with a bill of
# materials and SHA256SUMS. Two runs produce the same bytes.
#
# Usage: tools/release.sh [--output FOLDER] [--chroots FOLDER] [--no-proofs] [--twice]
#                         [--whole-sample]
# --output        folder for the files [build/dist]
# --chroots       folder for bare systems that the tests use [build/release-chroots]
# --no-proofs     makes the files without tests
# --twice         makes the files again from a clone of HEAD in another folder and compares all
#                 bytes
# --whole-sample  runs the whole golden sample under emulation (hours), not only its first
#                 predictions
# Needs Debian 12, because NOTICE lists the versions of its libraries. Needs root or sudo for
# packages and tests.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
umask 022

output=build/dist chroots=build/release-chroots proofs=yes twice=no emulated=(--count 40)
while (($# > 0)); do
  case $1 in
    --output | --chroots)
      [[ $# -gt 1 ]] || { echo "tools/release.sh: $1 needs a folder" >&2; exit 2; }
      if [[ $1 == --output ]]; then output=$2; else chroots=$2; fi
      shift
      ;;
    --no-proofs) proofs=no ;;
    --twice) twice=yes ;;
    --whole-sample) emulated=() ;;
    *)
      echo "tools/release.sh: unknown option $1 (known: --output, --chroots, --no-proofs, --twice, --whole-sample)" >&2
      exit 2
      ;;
  esac
  shift
done

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }
version=$(sed -n 's/^project(tpsim VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} LC_ALL=C.UTF-8 TZ=UTC
revision=$(git describe --always --abbrev=40 --match= --dirty)
tag=$(git describe --exact-match --match 'v*' 2>/dev/null || true)
if [[ -n $tag && $tag != "v$version" ]]; then
  echo "tools/release.sh: HEAD is tagged $tag, but CMakeLists.txt has version $version" >&2
  exit 2
fi

step "packages"
tools/install_packages.sh --release

step "libraries for aarch64"
tools/release/arm64_sysroot.sh

stage=build/release-stage
rm -rf "$stage"
mkdir -p "$stage" "$output"
rm -rf "$output"/tpsim[-_]* "$output/simple" "$output/SHA256SUMS"
step "programs"
build() { # PRESET TARGET...
  # The programs contain the page for browsers, which tpsim report writes.
  local options=()
  if [[ $1 == static* ]]; then options=("-DTPSIM_PAGE=$PWD/build/page/tpsim-page.html"); fi
  if ! { cmake --preset "$1" "${options[@]}" && cmake --build --preset "$1" --target "${@:2}"; } >"$stage/$1.log" 2>&1; then
    tail -n 40 "$stage/$1.log" >&2
    exit 1
  fi
}
build page tpsim_page
build static tpsim tpsim_python
build static-arm64 tpsim
python_package=build/static/python/tpsim
strip --strip-all -o "$stage/x86_64-tpsim" build/static/tpsim
aarch64-linux-gnu-strip --strip-all -o "$stage/aarch64-tpsim" build/static-arm64/tpsim

step "programs do not need libraries of the machine"
tests/tools/static_program_test.sh build/static/tpsim
tests/tools/static_program_test.sh build/static-arm64/tpsim qemu-aarch64-static

step "files of the release"
declare -A debian=([x86_64]=amd64 [aarch64]=arm64)
for arch in x86_64 aarch64; do
  tools/release/stage.sh "$stage/$arch-tpsim" "$stage/$arch" "$stage/x86_64-tpsim"
  tools/release/make_tarball.py --prefix "$stage/$arch" --arch "$arch" --version "$version" --output "$output"
  tools/release/make_deb.sh "$stage/$arch" "${debian[$arch]}" "$version" "$python_package" "$output"
  tools/release/make_wheel.py --program "$stage/$arch/bin/tpsim" --package "$python_package" --arch "$arch" \
    --notices "$stage/$arch/share/doc/tpsim/licenses" --version "$version" --output "$output"
done
tools/release/make_index.py "$output"
tools/release/make_image.py --prefix "x86_64=$stage/x86_64" --prefix "aarch64=$stage/aarch64" \
  --version "$version" --revision "$revision" --output "$output"
tools/release/make_sbom.py --program "x86_64=$stage/x86_64/bin/tpsim" --program "aarch64=$stage/aarch64/bin/tpsim" \
  --packages "aarch64=build/arm64-sysroot/packages" --version "$version" --output "$output"
(cd "$output" && sha256sum tpsim* >SHA256SUMS)
stat --printf='%10s bytes  %n\n' "$stage"/*-tpsim "$output"/tpsim* "$output/SHA256SUMS"

if [[ $twice == yes ]]; then
  step "second build in another folder"
  if [[ $revision == *-dirty ]]; then
    echo "tools/release.sh: --twice builds HEAD; commit or stash the changes first" >&2
    exit 2
  fi
  other=$(mktemp -d)
  trap 'rm -rf "$other"' EXIT
  git clone --quiet --no-hardlinks . "$other/somewhere-else"
  "$other/somewhere-else/tools/release.sh" --no-proofs --output "$other/dist" >"$stage/again.log" ||
    { tail -n 40 "$stage/again.log"; exit 1; }
  diff "$output/SHA256SUMS" "$other/dist/SHA256SUMS"
  echo "both builds have the same bytes"
fi
if [[ $proofs == no ]]; then exit 0; fi

step "lintian"
# lintian warns if it runs as root, as it does in a container.
lintian --fail-on error --allow-root "$output"/*.deb

step "the golden sample: x86-64 bit for bit"
tools/golden_sample.py check --program "$stage/x86_64/bin/tpsim" --exact

step "the golden sample: aarch64 to 1e-9, emulated"
tools/golden_sample.py check --program "qemu-aarch64-static $stage/aarch64/bin/tpsim" --tolerance 1e-9 "${emulated[@]}"

step "bare systems"
tools/release/prove.sh "$output" "$chroots"
step "done"
