#!/usr/bin/env bash
# Makes tpsim_VERSION_ARCH.deb from a staged prefix (tools/release/stage.sh). It contains the static
# program, which does not depend on other packages, and the Python package that calls it.
#
# Usage: tools/release/make_deb.sh PREFIX amd64|arm64 VERSION PYTHON_PACKAGE OUTPUT_FOLDER
set -euo pipefail
umask 022
prefix=$1 arch=$2 version=$3 python_package=$4 output=$5
: "${SOURCE_DATE_EPOCH:?must be set, as tools/release.sh does}"
maintainer="The tpsim authors <maintainers@tpsim.invalid>" # there is no public address yet
cd "$(dirname "$0")/../.."

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
cp -r "$prefix" "$root/usr"
documents=$root/usr/share/doc/tpsim
rm "$documents/LICENSE" # Debian's copyright file refers to Debian's copy of the license
gzip -9n "$root/usr/share/man/man1/tpsim.1" "$documents/CHANGELOG.md"

# Copies the Python sources without bytecode, which differs between versions of Python.
modules=$root/usr/lib/python3/dist-packages/tpsim
mkdir -p "$modules"
find "$python_package" -maxdepth 1 -type f \( -name '*.py' -o -name '*.pyi' -o -name py.typed \) \
  -exec install -m 644 -t "$modules" {} +

{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: tpsim\n\n'
  printf 'Files: *\nCopyright: 2026 The tpsim authors\nLicense: Apache-2.0\n'
  printf 'Comment:\n Libraries that are linked in and sources of the data: /usr/share/doc/tpsim/NOTICE.\n'
  printf ' Notices of the libraries: /usr/share/doc/tpsim/licenses.\n\n'
  printf 'License: Apache-2.0\n On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$documents/copyright"
{
  printf 'tpsim (%s) unstable; urgency=medium\n\n  * %s: /usr/share/doc/tpsim/CHANGELOG.md.gz.\n\n' \
    "$version" "What changed"
  printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$documents/changelog.gz"

mkdir -p "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/tpsim" <<'OVERRIDES'
# The package is meant to be one static file that runs on any Linux.
tpsim: statically-linked-binary [usr/bin/tpsim]
tpsim: embedded-library *
tpsim: shared-library-lacks-prerequisites [usr/bin/tpsim]
OVERRIDES

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: tpsim
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du --apparent-size -sk "$root/usr" | cut -f1)
Recommends: python3
Section: science
Priority: optional
Description: plan the training of large language models
 tpsim plans how a large language model is laid out over GPUs: tensor,
 pipeline, data, context and expert parallelism, ZeRO and recomputation. It
 predicts step time and memory with intervals, and writes the launch files of
 the usual training software. No GPU is needed.
CONTROL
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# Uses one thread, because the blocks of xz, and so the bytes, depend on the number of threads.
dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$output/tpsim_${version}_$arch.deb" >/dev/null
