#!/usr/bin/env bash
# Unpacks the libraries that the aarch64 program is linked with (cmake/Arm64.cmake) into a folder.
# They are the arm64 packages of this Debian release. apt verifies them with its signed lists,
# without enabling arm64 on this machine. Changes nothing outside the folder and needs no root.
#
# Usage: tools/release/arm64_sysroot.sh [FOLDER, build/arm64-sysroot when not given]
# FOLDER/packages lists the packages, one "PACKAGE VERSION" per line.
set -euo pipefail
cd "$(dirname "$0")/../.."

sysroot=$(realpath -m "${1:-build/arm64-sysroot}")
packages=(libfmt-dev libtomlplusplus-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
          zlib1g-dev libyaml-dev)
if [[ -f $sysroot/complete && $(<"$sysroot/complete") == "${packages[*]}" ]]; then exit 0; fi

apt_folder=$sysroot.apt
rm -rf "$sysroot" "$apt_folder"
mkdir -p "$sysroot" "$apt_folder"/{lists/partial,archives/partial}
touch "$apt_folder/status"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
     -o "Dir::State=$apt_folder" -o "Dir::State::lists=$apt_folder/lists"
     -o "Dir::State::status=$apt_folder/status" -o "Dir::Cache=$apt_folder"
     -o "Dir::Cache::archives=$apt_folder/archives" -o Acquire::Languages=none)
if ((EUID == 0)); then apt+=(-o APT::Sandbox::User=root); fi # apt's sandbox user cannot write here
"${apt[@]}" update
(cd "$apt_folder/archives" && "${apt[@]}" download "${packages[@]}")
for package in "$apt_folder"/archives/*.deb; do
  dpkg -x "$package" "$sysroot"
  dpkg-deb --show --showformat '${Package} ${Version}\n' "$package" >>"$sysroot/packages"
done
rm -rf "$apt_folder"
echo "${packages[*]}" >"$sysroot/complete"
