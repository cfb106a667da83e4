#!/usr/bin/env bash
# Checks that take too long for every change: clang-tidy over the whole tree, all tests with
# sanitizers, the tests with the label nightly without sanitizers, the long tests on the emulated
# GPU, and one hour of fuzzing. Shipped profiles must equal the output of their builders. A release
# is made twice and tested, with the whole golden sample under emulation.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install_packages.sh --dev
tools/tidy.sh
tools/build_profiles.py --check
tools/build_newer_profiles.py --check
cmake --preset asan
cmake --build --preset asan
ctest --preset asan
tools/fuzz.sh 60
cmake --preset release
cmake --build --preset release
ctest --preset release -L nightly  # includes the golden sample, bit for bit
cmake --preset emulated
cmake --build --preset emulated
ctest --preset emulated -L gpu
tools/release.sh --twice --whole-sample
