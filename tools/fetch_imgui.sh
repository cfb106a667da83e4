#!/usr/bin/env bash
# Unpacks the sources of Dear ImGui into /usr/local/src/imgui, from the distribution's source
# package of libimgui-dev. The page for browsers is compiled from these sources. Does nothing if
# they already exist.
#
# Usage: tools/fetch_imgui.sh      as root; tools/install_packages.sh --web calls it
set -euo pipefail
target=/usr/local/src/imgui
[[ -f $target/imgui.cpp ]] && exit 0
give_up() {
  echo "tools/fetch_imgui.sh: $1; the build will omit tpsim report" >&2
  exit 4
}
command -v apt-get >/dev/null || give_up "apt-get is not installed, which fetches ImGui's source package"
mkdir --parents "$target" || give_up "$target cannot be written to"

# Lists the configured package sources as source packages in a temporary folder, so that the
# settings of this machine are not changed.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lists" "$folder/parts"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ -f $file ]] || continue
  sed -n 's/^deb\([[:space:]]\)/deb-src\1/p' "$file" >"$folder/parts/$(basename "${file%.list}").list"
done
for file in /etc/apt/sources.list.d/*.sources; do
  [[ -f $file ]] || continue
  sed 's/^Types:.*/Types: deb-src/' "$file" >"$folder/parts/$(basename "$file")"
done
apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$folder/parts" \
    -o "Dir::State::lists=$folder/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
    -o APT::Sandbox::User=root "$@" </dev/null >/dev/null
}
cd "$folder"
apt update && apt --download-only source imgui || give_up "ImGui's source package cannot be fetched"
tar --extract --file imgui_*.orig.tar.* --strip-components 1 --directory "$target"
echo "unpacked Dear ImGui's sources into $target"
