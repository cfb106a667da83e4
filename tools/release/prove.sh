#!/usr/bin/env bash
# Tests a release on systems without additional packages: bare Debian 12, 13 and 11, as user nobody,
# with a read-only root and no network. Every file must plan BLOOM-176B in less than 5 s on x86-64,
# and all files must print the same plan.
#
# Usage: tools/release/prove.sh RELEASE_FOLDER CHROOT_FOLDER
# Creates missing systems (tools/release/chroots.sh). Needs root; without root it runs itself with
# sudo, which asks for the password once.
set -euo pipefail
release=$(realpath "$1") chroots=$(realpath --canonicalize-missing "$2")
cd "$(dirname "$0")/../.."

if ((EUID != 0)); then
  if command -v sudo >/dev/null && sudo --non-interactive true 2>/dev/null; then
    exec sudo --preserve-env=http_proxy,https_proxy "$0" "$release" "$chroots"
  fi
  echo "tools/release/prove.sh: this script must be root to create and enter bare systems; run it with sudo" >&2
  exit 4
fi
if ! unshare --mount --net --pid --fork true 2>/dev/null; then
  echo "tools/release/prove.sh: this user may not create namespaces; start the container with --privileged" >&2
  exit 4
fi
for needed in debootstrap qemu-aarch64-static skopeo umoci; do
  command -v "$needed" >/dev/null || {
    echo "tools/release/prove.sh: $needed is not installed; tools/install_packages.sh --release installs it" >&2
    exit 4
  }
done
tools/release/chroots.sh "$chroots"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place" # the user nobody reads it
cp "$release"/tpsim* "$place/" 2>/dev/null || {
  echo "tools/release/prove.sh: $release contains no release files; tools/release.sh creates them" >&2
  exit 2
}
cp "$(command -v qemu-aarch64-static)" "$place/qemu"
plan=(plan --model bloom-176b --gpus 384)
failures=0

# try SYSTEM FILE LIMIT SETUP COMMAND...: runs COMMAND, which must print the plan, and prints one
# line of the report
try() {
  local system=$1 file=$2 limit=$3 setup=$4 printed=$place/answer remark=""
  shift 4
  local seconds where=${system##"$chroots/"}
  where=${where##"$place/"}
  if ! tools/release/in_chroot.sh "$system" "$place" "$setup" "$@" >"$printed" 2>"$place/errors"; then
    remark="FAILED: $(tail -n 3 "$place/errors" | head -c 400 | tr '\n' ' ')"
  fi
  seconds=$(tail -n 1 "$place/errors")
  if [[ -z $remark ]]; then remark=$(same_plan "$printed"); fi
  if [[ -z $remark && $limit != none ]] && awk "BEGIN { exit !($seconds >= $limit) }"; then
    remark="FAILED: takes $limit s or longer"
  fi
  printf '%-21s %-32s %6s s  %s\n' "$where" "$file" "$seconds" "${remark:-ok}"
  if [[ $remark == FAILED* ]]; then failures=$((failures + 1)); fi
}

# Prints nothing if the output is a plan that equals the plan of the first output in layout, times,
# memory and ranking. Otherwise prints the failure.
same_plan() {
  sed -n '/^  layout /,/^  ruled out/p' "$1" >"$place/plan"
  [[ -e $place/expected ]] || cp "$place/plan" "$place/expected"
  if ! grep -q '^RANKING' "$place/plan"; then
    echo "FAILED: the output contains no plan"
  elif ! cmp -s "$place/expected" "$place/plan"; then
    echo "FAILED: the plan differs from that of the first file: $(diff "$place/expected" "$place/plan" | sed -n 2p)"
  fi
}

# unpack ARCHITECTURE OCI_ARCHITECTURE: unpacks the root file system of the image, as a container
# engine does
unpack() {
  skopeo --insecure-policy --override-arch "$2" copy --quiet \
    "oci-archive:$(ls "$place"/tpsim-*-oci.tar)" "oci:$place/oci-$1:tpsim"
  umoci --log=error unpack --image "$place/oci-$1:tpsim" "$place/image-$1" >/dev/null
  python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["process"]["args"])' \
    "$place/image-$1/config.json"
}

echo
for suite in bookworm trixie bullseye; do
  system=$chroots/$suite
  [[ -d $system ]] || continue
  try "$system" "tarball x86_64" 5 "" \
    /bin/sh -ec "cd /tmp; tar xzf /release/tpsim-*-x86_64-linux.tar.gz; tpsim-*/bin/tpsim ${plan[*]}"
  try "$system" "Debian package amd64" 5 "dpkg --install /release/tpsim_*_amd64.deb" /usr/bin/tpsim "${plan[@]}"
  try "$system" "tarball aarch64, emulated" none "" \
    /bin/sh -ec "cd /tmp; tar xzf /release/tpsim-*-aarch64-linux.tar.gz; /release/qemu tpsim-*/bin/tpsim ${plan[*]}"
  try "$system" "Debian package arm64, emulated" none \
    "dpkg --add-architecture arm64; dpkg --install /release/tpsim_*_arm64.deb" /release/qemu /usr/bin/tpsim "${plan[@]}"
  [[ -d $system-python ]] || continue
  try "$system-python" "wheel x86_64" none "" /bin/sh -ec "python3 -m venv /tmp/v
    /tmp/v/bin/pip install --quiet --disable-pip-version-check --no-index /release/tpsim-*x86_64.whl
    /tmp/v/bin/python -c 'import tpsim; assert tpsim.plan(\"bloom-176b\", gpus=384).best.gpus == 384'
    /tmp/v/bin/tpsim ${plan[*]}"
  try "$system-python" "wheel aarch64, emulated" none "" /bin/sh -ec "python3 -m venv /tmp/v
    /tmp/v/bin/pip install --quiet --disable-pip-version-check --no-index --target /tmp/w \
      --platform manylinux2014_aarch64 --only-binary=:all: /release/tpsim-*aarch64.whl
    /release/qemu /tmp/w/bin/tpsim ${plan[*]}"
done
read -r entrypoint _ < <(unpack x86_64 amd64)
try "$place/image-x86_64/rootfs" "image amd64" 5 "" "$entrypoint" "${plan[@]}"
read -r entrypoint _ < <(unpack aarch64 arm64)
try "$place/image-aarch64/rootfs" "image arm64, emulated" none "" /release/qemu "$entrypoint" "${plan[@]}"

if ((failures > 0)); then
  echo "tools/release/prove.sh: $failures tests failed" >&2
  exit 1
fi
echo "every file plans BLOOM-176B on a system without additional packages"
