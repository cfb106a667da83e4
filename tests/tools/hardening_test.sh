#!/usr/bin/env bash
# Checks compile and link options, read from the programs.
#
# Usage: hardening_test.sh BUILD_TYPE SANITIZERS PROGRAM...
set -euo pipefail
build_type=$1 sanitizers=$2
shift 2
command -v readelf >/dev/null || exit 77

failed=0
demand() { # MESSAGE, then a command that must succeed
  local what=$1
  shift
  "$@" || { echo "$program: $what"; failed=1; }
}

has() { grep -q -- "$1" <<<"$2"; }
lacks() { ! grep -q -- "$1" <<<"$2"; }

for program in "$@"; do
  dynamic=$(readelf --dynamic --wide "$program")
  # An empty entry in a list of folders means the current folder; $ORIGIN is the program's folder.
  paths=$(sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p' <<<"$dynamic")
  [[ -n $paths ]] || paths=/
  IFS=: read -ra folders <<<"$paths:end"
  unset 'folders[-1]'
  for folder in "${folders[@]}"; do
    demand "looks for libraries in '$folder' of $paths" [ "${folder:0:1}" = / ]
  done
  [[ $build_type == Release && -z $sanitizers ]] || continue
  header=$(readelf --file-header "$program")
  segments=$(readelf --program-headers --wide "$program")
  symbols=$(readelf --dyn-syms --wide "$program")
  demand "is not position-independent" has 'Type:.*DYN' "$header"
  demand "has no read-only relocations" has GNU_RELRO "$segments"
  demand "binds names while it runs" has 'BIND_NOW\|Flags:.*NOW' "$dynamic"
  demand "has an executable stack" lacks 'GNU_STACK.*RWE' "$segments"
  demand "has no stack protector" has __stack_chk_fail "$symbols"
  demand "has no checked copies" has '_chk@' "$symbols"
done
exit "$failed"
