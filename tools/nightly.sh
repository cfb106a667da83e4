#!/usr/bin/env bash
# Checks that take too long for every change: clang-tidy over the whole tree, and the tests labelled
# nightly with and without sanitizers, including the long ones of the emulated GPU. One hour of
# fuzzing. Shipped profiles must equal the output of their builders. A release is made twice and
# checked, with the whole golden sample under emulation.
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
ctest --preset release -L nightly  # includes the golden sample, bit for bit
cmake --preset emulated
cmake --build --preset emulated
ctest --preset emulated -L gpu
tools/release.sh --twice --whole-sample
