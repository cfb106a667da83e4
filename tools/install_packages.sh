#!/usr/bin/env bash
# Installs missing build dependencies of tpsim on Debian 12 and related distributions.
#
# Usage: tools/install_packages.sh [--full | --web | --ci | --dev | --release]
# --full adds packages for the window, which the first plan does not need. --web also adds the
# compiler for web pages (0.8 GB), --ci the tools of .ci/run, --dev also developers' tools.
# --release adds the tools of tools/release.sh. Needs root or sudo only if a package is missing.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin # dpkg needs these folders; plain su omits them

build=(
  g++                    # C++20: GCC 12
  cmake ninja-build      # configure and build
  libfmt-dev             # text
  nlohmann-json3-dev     # JSON files
  libcli11-dev           # command line
  zlib1g-dev             # compressed logs
  libyaml-dev libtomlplusplus-dev  # configurations of other stacks
  libeigen3-dev          # fits; GEMMs of the CPU device if no faster library is installed
)
tests=(
  catch2                 # test framework
)
optional=(               # found by CMake: tpsim builds without them too
  libdnnl-dev            # faster GEMMs; libopenblas-dev is a slower alternative
  libopenmpi-dev openmpi-bin  # ranks as processes
  python3                # import tpsim; recipes, memory snapshots, reports of Nsight Systems
)
full=(
  pkg-config libimgui-dev libglfw3-dev libpng-dev fonts-inter  # tpsim gui
  fonttools              # cuts the typeface to the letters used
)
web=(
  emscripten xz-utils    # tpsim report; tools/fetch_imgui.sh adds Dear ImGui's sources
  zopfli                 # makes the page smaller
)
ci=(
  clang-format           # tools/format.sh
  clang-tidy             # tools/tidy.sh
  lld                    # links programs with sanitizers, which are large
  python3-yaml           # tools/tpsim_judges
  shellcheck             # scripts that tpsim export writes
  xvfb libgl1-mesa-dri   # the window on a virtual display
  chromium               # the page in a browser
  ccache                 # compiles nothing twice
)
developer=(
  make                   # the targets of Makefile
  clang                  # tools/fuzz.sh
)
release=(
  g++-12-aarch64-linux-gnu  # programs for aarch64
  qemu-user-static       # runs them
  lintian                # checks the Debian packages
  skopeo umoci           # read the container image
  debootstrap debian-archive-keyring  # bare systems to test a release
)

wanted=("${build[@]}" "${tests[@]}" "${optional[@]}")
case "${1:-}" in
  "") ;;
  --full) wanted+=("${full[@]}") ;;
  --web) wanted+=("${full[@]}" "${web[@]}") ;;
  --ci) wanted+=("${full[@]}" "${web[@]}" "${ci[@]}") ;;
  --dev) wanted+=("${full[@]}" "${web[@]}" "${ci[@]}" "${developer[@]}") ;;
  --release) wanted+=("${full[@]}" "${web[@]}" "${release[@]}") ;;
  *)
    echo "tools/install_packages.sh: unknown option $1 (known: --full, --web, --ci, --dev, --release)" >&2
    exit 2
    ;;
esac

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
lacks_sources() { # of Dear ImGui, if the page is built
  [[ " ${wanted[*]} " == *" emscripten "* && ! -f /usr/local/src/imgui/imgui.cpp ]]
}
if ((${#missing[@]} == 0)) && ! lacks_sources; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "tools/install_packages.sh: apt-get is not installed; install the equivalents of: ${missing[*]}" >&2
  exit 4
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "tools/install_packages.sh: run as root to install: ${missing[*]}" >&2
    exit 4
  fi
  as_root=(sudo)
fi

apt() {
  # Waits up to 600 s for the lock if another apt is running.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
if ((${#missing[@]} > 0)); then
  echo "installing: ${missing[*]}"
  apt update || echo "tools/install_packages.sh: apt-get update failed; the installation uses the existing package lists" >&2
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! apt install --yes --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    exit 4
  fi
fi
if lacks_sources && ! "${as_root[@]}" "$(dirname "$0")/fetch_imgui.sh"; then
  [[ $1 == --web || $1 == --release ]] && exit 4 # other modes do not need the page
fi
exit 0
