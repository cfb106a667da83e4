#!/usr/bin/env bash
# What takes too long for every change: clang-tidy over the whole tree, and the tests labelled nightly,
# with and without sanitizers, the long ones of the emulated GPU among them, an hour of attacks on
# every reader, whether the shipped profiles are what their builders make of published tables, and a release
# that is made twice and proved, with the whole golden sample under emulation.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh --dev
tools/tidy.sh
tools/build_profiles.py --check
tools/build_newer_profiles.py --check
cmake --preset asan
cmake --build --preset asan
ctest --preset asan -L nightly
tools/fuzz.sh 60
cmake --preset release
cmake --build --preset release
ctest --preset release -L nightly  # the golden sample bit for bit among them
cmake --preset emulated
cmake --build --preset emulated
ctest --preset emulated -L gpu
tools/release.sh --twice --whole-sample
