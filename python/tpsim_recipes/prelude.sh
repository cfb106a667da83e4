# Sourced by every shell of a launch script. Traces commands with the file that they are in, and keeps the values that the user gives.
command_not_found_handle() { TPSIM_NAME=$1 exec "@BASE@/stubs/any" "${@:2}"; }
ulimit() { builtin ulimit "$@" 2>/dev/null || true; } # a cluster allows more than the jail
_tpsim_variables() {
  local _tpsim_name
  for _tpsim_name in $(compgen -v); do
    case $_tpsim_name in BASH* | _tpsim* | FUNCNAME | DIRSTACK | GROUPS | PIPESTATUS | COMP_* | EPOCH* | SRANDOM) continue ;; esac
    local -n _tpsim_value=$_tpsim_name
    printf '%s\0%d\0' "$_tpsim_name" "${#_tpsim_value[@]}"
    ((${#_tpsim_value[@]} == 0)) || printf '%s\0' "${_tpsim_value[@]}"
    unset -n _tpsim_value
  done
}
RANDOM=1
exec 61>>"@BASE@/trace"
BASH_XTRACEFD=61
PS4=$'\x1e''${BASH_SOURCE[0]}:$LINENO'$'\x1f'
if [[ $TPSIM_MAIN ]]; then
  unset TPSIM_MAIN
  trap '{ set +x +u; _tpsim_variables >"@BASE@/variables"; } 2>/dev/null' EXIT
fi
@PINS@
set -x
