#!/usr/bin/env bash
# Writes the files of a release below a prefix: program, manual page, shell completion, documents,
# licenses.
#
# Usage: tools/release/stage.sh PROGRAM PREFIX PRINTER
# PROGRAM must be stripped. PRINTER is the same program built for this machine; it prints the manual
# page.
set -euo pipefail
umask 022
program=$1 prefix=$2 printer=$3
cd "$(dirname "$0")/../.."

mkdir -p "$prefix/bin" "$prefix"/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
install -m 755 "$program" "$prefix/bin/tpsim"
"$printer" help man >"$prefix/share/man/man1/tpsim.1"
"$printer" completion bash >"$prefix/share/bash-completion/completions/tpsim"
"$printer" completion zsh >"$prefix/share/zsh/vendor-completions/_tpsim"
"$printer" completion fish >"$prefix/share/fish/vendor_completions.d/tpsim.fish"

documents=$prefix/share/doc/tpsim
mkdir -p "$documents/licenses"
install -m 644 README.md CHANGELOG.md CITATION.cff LICENSE NOTICE "$documents/"
tools/release/licences.py "$documents/licenses"
